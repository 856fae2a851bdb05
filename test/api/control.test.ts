import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { expect, it } from "vitest";
import { saleKeys } from "../../src/redis/keys.js";
import { unitsPromised } from "../support/crowd.js";
import { connectReadThenWrite } from "../support/read-then-write.js";
import { prepareSluice } from "../support/sluice.js";
import { atEndOfFile } from "../support/test-file.js";

const UNITS = 100;
const BUYERS = 2_000;
const AT_ONCE = 200;

it("the control: a reserve that reads and then writes oversells under the same crowd, and the count shows it", async () => {
  const sluice = await prepareSluice();
  const sale = await sluice.createSale(await sluice.startApi(), { initial: [UNITS], maxPerBuyer: 1 });
  const itemId = sale.items[0]?.id ?? "";
  const naive = await connectReadThenWrite(sluice.redis.url);

  const answers: { status: string }[] = [];
  let buyers = 0;
  const oneAfterTheOther = async () => {
    while (buyers < BUYERS) {
      buyers += 1;
      const who = { buyerId: `buyer-${buyers}`, requestId: randomUUID() };
      answers.push({ status: await naive.reserve({ saleId: sale.id, itemId, ...who }) });
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, oneAfterTheOther));

  expect(answers).toHaveLength(BUYERS);

  expect(unitsPromised(answers)).toBeGreaterThan(UNITS);
  const redis = new Redis(sluice.redis.url);
  atEndOfFile(() => redis.disconnect());
  expect(Number(await redis.hget(saleKeys(sale.id).stock, itemId))).toBe(UNITS - unitsPromised(answers));
});
