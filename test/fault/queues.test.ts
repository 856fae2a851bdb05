/** Queues that lose things, and jobs that nobody asked for: faults 9, 12 and 18 of docs/faults.md. */
import { Redis } from "ioredis";
import { beforeAll, describe, expect, test } from "vitest";
import { queuePrefix } from "../../src/redis/keys.js";
import type { Resources } from "../../src/resources.js";
import { openProcess } from "../operations/support.js";
import { settleAndCheck } from "../support/invariants.js";
import { placeOrder, reserveInTheEnd } from "../support/orders.js";
import type { NodeProcess } from "../support/processes.js";
import {
  type Api,
  prepareSluice,
  reserve,
  type TestSale,
  type TestSluice,
  waitUntilDecided,
} from "../support/sluice.js";
import { query } from "../support/sql.js";
import { atEndOfFile } from "../support/test-file.js";
import { waitFor } from "../support/wait.js";
import { type Buyer, endLetter, letterOf, QUICK, queue, recordsOf, tuned } from "./drills.js";

let sluice: TestSluice;
let api: Api;
let worker: NodeProcess;
let inside: Resources;
let redis: Redis;
/** A buyer whose order can't be written, in a sale of his own. It takes five attempts, so it begins first and is seen to last. */
let poisoned: { sale: TestSale; buyer: Buyer };

beforeAll(async () => {
  sluice = await prepareSluice({ env: tuned(QUICK) });
  [api, worker, inside] = await Promise.all([sluice.startApi(), sluice.startWorker(), openProcess(sluice)]);
  redis = new Redis(sluice.redis.url);
  atEndOfFile(() => redis.disconnect());
  await query(
    sluice.databaseUrl,
    `CREATE FUNCTION refuse_poison() RETURNS trigger LANGUAGE plpgsql AS $$
     BEGIN
       IF NEW."buyerId" = 'poison' THEN RAISE EXCEPTION 'no order for %', 'you'; END IF;
       RETURN NEW;
     END $$;
     CREATE TRIGGER refuse_poison BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION refuse_poison()`,
  );
  const sale = await sluice.createSale(api, { initial: [5] });
  poisoned = { sale, buyer: await queue(sluice, api, sale, { name: "poison" }) };
});

const settled = (sale: TestSale) => settleAndCheck(sluice.databaseUrl, sluice.redis.url, sale.id);
const stock = (sale: TestSale) => redis.hvals(`sluice:{${sale.id}}:stock`);

/** A sale with ten requests that wait in its queue: the worker stands still until it is let go. */
async function waitingSale(): Promise<{ sale: TestSale; buyers: Buyer[] }> {
  const sale = await sluice.createSale(api, { initial: [20] });
  worker.kill("SIGSTOP");
  const buyers = await Promise.all(Array.from({ length: 10 }, () => queue(sluice, api, sale)));
  await waitFor(async () => (await inside.queues.counts(sale.id)).waiting === 10, { what: "all of the jobs" });
  return { sale, buyers };
}

async function expectOrders(sale: TestSale, buyers: readonly Buyer[]): Promise<void> {
  for (const { token, requestId } of buyers) {
    expect((await waitUntilDecided(api, token, sale.id, requestId)).status).toBe("SUCCESS");
  }
  await settled(sale);
  expect(await recordsOf(sluice, sale)).toEqual({ orders: buyers.length, events: 0, LOCK: buyers.length });
}

describe("of what was accepted all is written, and once, where", () => {
  const isOfQueue = (sale: TestSale, key: string) => key.startsWith(queuePrefix(sale.id));

  test.each([
    ["only the queue's keys are deleted", true],
    ["only the sale's own keys are deleted", false],
  ])("%s", async (_what, ofQueue) => {
    const { sale, buyers } = await waitingSale();
    const keys = (await redis.keys(`sluice:{${sale.id}}:*`)).filter((key) => isOfQueue(sale, key) === ofQueue);
    expect(keys.length).toBeGreaterThan(10);
    await redis.del(...keys);
    worker.kill("SIGCONT");
    await expectOrders(sale, buyers);
    const { token } = buyers[0] as Buyer;
    expect((await reserveInTheEnd(api, token, sale)).status).toBe("ALREADY_RESERVED");
  });
});

test("a buyer who has an order gets no other and takes no stock: by another request, by the same, by its job come again", async () => {
  const sale = await sluice.createSale(api, { initial: [5] });
  const { id, token, requestId } = await placeOrder(sluice, api, sale, "faithful", { quantity: 2 });
  const before = { stock: await stock(sale), records: await recordsOf(sluice, sale) };
  const order = { requestId, order: { id } };
  expect((await reserve(api, token, sale)).data?.reserve).toMatchObject({
    status: "ALREADY_RESERVED",
    reservation: order,
  });
  expect((await reserve(api, token, sale, { requestId, quantity: 2 })).data?.reserve).toMatchObject({
    status: "DECIDED",
    reservation: order,
  });
  await inside.queues.add(sale.id, [requestId]);
  // Its turn has come when that of the next one has.
  await placeOrder(sluice, api, sale, "next", { quantity: 1 });
  expect(await inside.queues.states(sale.id, [requestId])).toEqual(["unknown"]);
  expect(await stock(sale)).toEqual([String(Number(before.stock[0]) - 1)]);
  expect(await recordsOf(sluice, sale)).toEqual({ orders: 2, events: 0, LOCK: 2 });
  expect(before.records).toEqual({ orders: 1, events: 0, LOCK: 1 });
  await settled(sale);
});

test("jobs that can't be read, or that name another request, become dead letters, and those beside them are written", async () => {
  const { sale, buyers } = await waitingSale();
  const [noPayload, noJson, misnamed, ...others] = buyers as [Buyer, Buyer, Buyer, ...Buyer[]];
  const write = ({ requestId }: Buyer, data: string) =>
    redis.hset(`${queuePrefix(sale.id)}:orders:${requestId}`, "data", data);
  await write(noPayload, '{"v":1}');
  await write(noJson, "{");
  await write(misnamed, JSON.stringify({ v: 1, saleId: sale.id, requestId: others[0]?.requestId }));
  worker.kill("SIGCONT");
  for (const { token, requestId } of others) {
    expect((await waitUntilDecided(api, token, sale.id, requestId)).status).toBe("SUCCESS");
  }
  for (const buyer of [noPayload, noJson, misnamed]) {
    const letter = await letterOf(sluice, buyer);
    expect(letter).toMatchObject({ stage: "job", status: "OPEN" });
    expect(await endLetter(sluice, api, "replayDeadLetter", sale, letter)).toBe("REPLAYED");
  }
  // Replayed, a job is made anew.
  await expectOrders(sale, buyers);
});

test("a request that can't be written is tried five times, and then it is a dead letter that can be compensated", async () => {
  const { sale, buyer } = poisoned;
  const letter = await letterOf(sluice, buyer);
  expect(letter).toMatchObject({
    stage: "write",
    attempts: 5,
    status: "OPEN",
    lastError: expect.stringContaining("no order for you"),
  });
  expect(await endLetter(sluice, api, "compensateDeadLetter", sale, letter)).toBe("COMPENSATED");
  const ended = await waitUntilDecided(api, buyer.token, sale.id, buyer.requestId);
  expect(ended).toMatchObject({ status: "FAILED", reasonCode: "PROCESSING_FAILED" });
  await settled(sale);
  expect(await recordsOf(sluice, sale)).toEqual({ orders: 0, events: 1 });
});
