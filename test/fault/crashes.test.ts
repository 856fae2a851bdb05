import { randomUUID } from "node:crypto";
import { afterEach, beforeAll, describe, expect, test } from "vitest";
import { settleAndCheck } from "../support/invariants.js";
import { reserveInTheEnd } from "../support/orders.js";
import { prepareSluice, reserve, type TestSluice, waitUntilDecided } from "../support/sluice.js";
import { query } from "../support/sql.js";
import { waitFor } from "../support/wait.js";

/** What is stuck is looked at after two seconds instead of thirty, what a dead worker held after two instead of ten. */
const SOON = { SLUICE_TUNING: '{"repairAfterMs":2000,"jobs":{"lockMs":2000,"stalledMs":1000}}' };

let sluice: TestSluice;

beforeAll(async () => {
  sluice = await prepareSluice({ env: SOON });
});

afterEach(() => sluice.endProcesses());

async function ordersOf(saleId: string): Promise<number> {
  const rows = await query<{ count: number }>(
    sluice.databaseUrl,
    'SELECT count(*)::int AS count FROM orders WHERE "saleId" = $1',
    [saleId],
  );
  return rows[0]?.count ?? -1;
}

test("a worker that is killed with jobs waiting leaves them to the next one", async () => {
  const api = await sluice.startApi();
  const worker = await sluice.startWorker();
  const sale = await sluice.createSale(api, { initial: [200] });
  worker.kill("SIGKILL");
  await worker.exited;
  const answers = await Promise.all(
    Array.from({ length: 100 }, async (_, buyer) =>
      reserveInTheEnd(api, await sluice.token("buyer", `w-${buyer}`), sale),
    ),
  );
  expect(answers.map(({ status }) => status)).toEqual(Array(100).fill("QUEUED"));
  expect(await ordersOf(sale.id)).toBe(0);

  await sluice.startWorker();
  await settleAndCheck(sluice.databaseUrl, sluice.redis.url, sale.id);
  expect(await ordersOf(sale.id)).toBe(100);
});

describe("Redis that is wiped", () => {
  test("with requests waiting: all of them end, once; past buyers stay refused; repeats keep their answers", async () => {
    const api = await sluice.startApi();
    const worker = await sluice.startWorker();
    const sale = await sluice.createSale(api, { initial: [100] });
    const early = await sluice.token("buyer", "early");
    const earlyId = randomUUID();
    await reserve(api, early, sale, { requestId: earlyId });
    await waitUntilDecided(api, early, sale.id, earlyId);
    worker.kill("SIGKILL");
    await worker.exited;

    const waiting = await Promise.all(
      Array.from({ length: 40 }, async (_, buyer) => {
        const token = await sluice.token("buyer", `flushed-${buyer}`);
        const requestId = randomUUID();
        expect((await reserveInTheEnd(api, token, sale, { requestId })).status).toBe("QUEUED");
        return { token, requestId };
      }),
    );
    await sluice.redis.flushAll();
    await sluice.startWorker();

    for (const { token, requestId } of waiting) {
      expect((await waitUntilDecided(api, token, sale.id, requestId)).status).toBe("SUCCESS");
    }
    const again = await waitFor(async () => (await reserve(api, early, sale)).data?.reserve, {
      what: "the sale to be loaded again",
    });
    expect(again.status).toBe("ALREADY_RESERVED");
    expect((await reserve(api, early, sale, { requestId: earlyId })).data?.reserve.status).toBe("DECIDED");
    await settleAndCheck(sluice.databaseUrl, sluice.redis.url, sale.id);
    expect(await ordersOf(sale.id)).toBe(41);
  });

  test("while an API stands between script and journal: its late write is refused, and the unit is not lost", async () => {
    const api = await sluice.startApi();
    await sluice.startWorker();
    const frozen = await sluice.startApi({ SLUICE_FAILPOINTS: "reserve.after_script=freeze" });
    const sale = await sluice.createSale(api, { initial: [1] });
    const slow = await sluice.token("buyer", "slow");
    const slowId = randomUUID();
    const late = reserve(frozen, slow, sale, { requestId: slowId });
    await frozen.waitForLine(/failpoint reserve.after_script/);

    await sluice.redis.flushAll();
    const quick = await sluice.token("buyer", "quick");
    const quickId = randomUUID();
    await waitFor(
      async () => (await reserve(api, quick, sale, { requestId: quickId })).data?.reserve.status === "QUEUED",
      { what: "another buyer to get the unit after the load" },
    );
    frozen.kill("SIGCONT");
    expect((await late).errors?.[0]?.extensions.code).toBe("SERVICE_UNAVAILABLE");
    expect((await reserve(api, slow, sale, { requestId: slowId })).data?.reserve.status).toBe("SOLD_OUT");
    expect((await waitUntilDecided(api, quick, sale.id, quickId)).status).toBe("SUCCESS");
    await settleAndCheck(sluice.databaseUrl, sluice.redis.url, sale.id);
    expect(await ordersOf(sale.id)).toBe(1);
  });
});
