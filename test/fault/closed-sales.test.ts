import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { afterEach, beforeAll, expect, test } from "vitest";
import { settleAndCheck } from "../support/invariants.js";
import { prepareSluice, reserve, type TestSluice, waitUntilDecided } from "../support/sluice.js";
import { query } from "../support/sql.js";
import { waitFor } from "../support/wait.js";

let sluice: TestSluice;

beforeAll(async () => {
  sluice = await prepareSluice({
    env: { SLUICE_TUNING: '{"repairAfterMs":2000,"jobs":{"lockMs":2000,"stalledMs":1000}}' },
  });
});
afterEach(() => sluice.endProcesses());

const CLOSE = "mutation ($id: ID!) { closeSale(saleId: $id) { state } }";

test("a sale that was closed while nobody could tell Redis is closed there, too, before it sells another unit", async () => {
  const api = await sluice.startApi();
  await sluice.startWorker();
  const sale = await sluice.createSale(api, { initial: [10] });
  // As it is left by an API that dies between its commit and its call to Redis.
  await query(
    sluice.databaseUrl,
    `UPDATE sales SET state = 'CLOSED', "stateVersion" = "stateVersion" + 1 WHERE id = $1`,
    [sale.id],
  );
  const client = new Redis(sluice.redis.url);
  await waitFor(async () => (await client.hget(`sluice:{${sale.id}}:sale`, "state")) === "CLOSED", {
    what: "Redis to be told",
  }).finally(() => client.disconnect());
  expect((await reserve(api, await sluice.token("buyer", "late"), sale)).data?.reserve.status).toBe("ENDED");
});

test("what was decided when the worker died is told to Redis, also if the sale was closed meanwhile", async () => {
  const api = await sluice.startApi();
  const sale = await sluice.createSale(api, { initial: [10] });
  const token = await sluice.token("buyer", "last");
  const requestId = randomUUID();
  await reserve(api, token, sale, { requestId });
  const doomed = await sluice.startWorker({ SLUICE_FAILPOINTS: "write.after_commit=kill" });
  await doomed.exited;
  await api.call(await sluice.token("operator", "olga"), CLOSE, { id: sale.id });

  await sluice.startWorker();
  await waitFor(async () => (await reserve(api, token, sale, { requestId })).data?.reserve.status === "DECIDED", {
    what: "the repeat to be told that it is decided",
    timeoutMs: 30_000,
  });
  await settleAndCheck(sluice.databaseUrl, sluice.redis.url, sale.id);
});

test("what was accepted when the API died becomes an order, also if the sale was closed meanwhile", async () => {
  const api = await sluice.startApi();
  const doomed = await sluice.startApi({ SLUICE_FAILPOINTS: "reserve.after_script=kill" });
  const sale = await sluice.createSale(api, { initial: [10] });
  const token = await sluice.token("buyer", "last");
  const requestId = randomUUID();
  await expect(reserve(doomed, token, sale, { requestId })).rejects.toThrow();
  await api.call(await sluice.token("operator", "olga"), CLOSE, { id: sale.id });

  await sluice.startWorker();
  expect((await waitUntilDecided(api, token, sale.id, requestId)).status).toBe("SUCCESS");
  await settleAndCheck(sluice.databaseUrl, sluice.redis.url, sale.id);
});

test("keys of a sale that were deleted one by one are mended by the next who meets the damage", async () => {
  const api = await sluice.startApi();
  await sluice.startWorker();
  const sale = await sluice.createSale(api, { initial: [10] });
  const token = await sluice.token("buyer", "loyal");
  const requestId = randomUUID();
  await reserve(api, token, sale, { requestId });
  await waitUntilDecided(api, token, sale.id, requestId);
  const client = new Redis(sluice.redis.url);
  try {
    for (const key of ["sale", "stock", "holders", `r:${requestId}`]) {
      await client.del(`sluice:{${sale.id}}:${key}`);
      await waitFor(async () => (await reserve(api, token, sale, { requestId })).data?.reserve.status === "DECIDED", {
        what: `the repeat to be answered without ${key}`,
      });
    }
  } finally {
    client.disconnect();
  }
  await settleAndCheck(sluice.databaseUrl, sluice.redis.url, sale.id);
});

test("a waiting line that was deleted while an API died over a request is missed, and its unit comes back", async () => {
  const api = await sluice.startApi();
  const doomed = await sluice.startApi({ SLUICE_FAILPOINTS: "reserve.after_script=kill" });
  await sluice.startWorker();
  const sale = await sluice.createSale(api, { initial: [5] });
  const token = await sluice.token("buyer", "unlucky");
  const requestId = randomUUID();
  await expect(reserve(doomed, token, sale, { requestId })).rejects.toThrow();
  const client = new Redis(sluice.redis.url);
  await client.del(`sluice:{${sale.id}}:pending`).finally(() => client.disconnect());
  await settleAndCheck(sluice.databaseUrl, sluice.redis.url, sale.id);
  expect((await reserve(api, token, sale, { requestId })).data?.reserve.status).toBe("QUEUED");
});

test("a requestId of no particular version becomes an order like any other", async () => {
  const api = await sluice.startApi();
  await sluice.startWorker();
  const sale = await sluice.createSale(api, { initial: [10] });
  const token = await sluice.token("buyer", "odd");
  const requestId = "deadbeef-0000-0000-0000-000000000001";
  expect((await reserve(api, token, sale, { requestId })).data?.reserve.status).toBe("QUEUED");
  expect((await waitUntilDecided(api, token, sale.id, requestId)).status).toBe("SUCCESS");
});
