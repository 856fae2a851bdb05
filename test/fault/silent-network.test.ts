import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { afterEach, beforeAll, describe, expect, test } from "vitest";
import { createTestDatabase } from "../support/database.js";
import { settleAndCheck } from "../support/invariants.js";
import { startTestRedis } from "../support/redis.js";
import { prepareSluice, reserve, type TestSluice, waitUntilDecided } from "../support/sluice.js";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy.js";
import { waitFor } from "../support/wait.js";

let sluice: TestSluice;
let toRedis: TcpProxy;
let toDatabase: TcpProxy;

beforeAll(async () => {
  const [redis, database] = await Promise.all([startTestRedis(), createTestDatabase()]);
  [toRedis, toDatabase] = await Promise.all([startTcpProxy(redis.url), startTcpProxy(database.url)]);
  sluice = await prepareSluice({
    stores: { redis, database },
    redisUrl: toRedis.url(redis.url),
    databaseUrl: toDatabase.url(database.url),
    env: { SLUICE_TUNING: '{"repairAfterMs":2000,"pools":{"sale":2,"reads":1}}' },
  });
});

afterEach(async () => {
  await sluice.endProcesses();
  toRedis.heal();
  toDatabase.heal();
});

async function stock(saleId: string): Promise<Record<string, string>> {
  const client = new Redis(sluice.redis.url);
  return client.hgetall(`sluice:{${saleId}}:stock`).finally(() => client.disconnect());
}

describe.each([
  { what: "the database", proxy: () => toDatabase },
  { what: "Redis", proxy: () => toRedis },
])("connections to $what on which nothing moves any more, without a word", ({ proxy }) => {
  test("are given up, and everything goes on over new ones", async () => {
    const api = await sluice.startApi();
    await sluice.startWorker();
    const sale = await sluice.createSale(api, { initial: [100] });
    const before = await sluice.token("buyer", "before");
    const beforeId = randomUUID();
    await reserve(api, before, sale, { requestId: beforeId });
    await waitUntilDecided(api, before, sale.id, beforeId);

    proxy().strand();
    const token = await sluice.token("buyer", "after");
    const requestId = randomUUID();
    await waitFor(
      async () => {
        const { data } = await reserve(api, token, sale, { requestId });
        return data?.reserve.status === "QUEUED" || data?.reserve.status === "DECIDED";
      },
      { what: "a reservation to be taken", timeoutMs: 30_000 },
    );
    expect((await waitUntilDecided(api, token, sale.id, requestId, 40_000)).status).toBe("SUCCESS");
    await settleAndCheck(sluice.databaseUrl, sluice.redis.url, sale.id);
  }, 120_000);
});

test("while the database is away, requests are refused before stock is touched, and repeats are answered", async () => {
  const api = await sluice.startApi();
  const sale = await sluice.createSale(api, { initial: [10] });
  const token = await sluice.token("buyer", "early");
  const requestId = randomUUID();
  expect((await reserve(api, token, sale, { requestId })).data?.reserve.status).toBe("QUEUED");

  toDatabase.cut();
  // Whoever comes before the API has noticed is accepted, and told no more than PENDING.
  await waitFor(
    async () => {
      const { data, errors } = await reserve(api, await sluice.token("buyer", randomUUID()), sale);
      if (data) expect(data.reserve.status).toBe("PENDING");
      return errors?.[0]?.extensions.code === "SERVICE_UNAVAILABLE";
    },
    { what: "new requests to be refused" },
  );
  const left = await stock(sale.id);
  const refused = await reserve(api, await sluice.token("buyer", "late"), sale);
  expect(refused.errors?.[0]?.extensions.code).toBe("SERVICE_UNAVAILABLE");
  expect(await stock(sale.id)).toEqual(left);
  expect((await reserve(api, token, sale, { requestId })).data?.reserve.status).toBe("QUEUED");
  expect((await reserve(api, token, sale)).data?.reserve.status).toBe("ALREADY_RESERVED");
  for (const [query, role] of [
    ["{ sales { edges { node { id } } } }", "buyer"],
    ["{ myOrders { edges { node { id } } } }", "buyer"],
    [`mutation { pauseSale(saleId: "${sale.id}", reason: "a drill") { state } }`, "operator"],
  ] as const) {
    const { errors } = await api.call(await sluice.token(role, "early"), query);
    expect(errors?.[0]?.extensions.code, query).toBe("SERVICE_UNAVAILABLE");
    expect(errors?.[0]?.extensions.retryAfterMs, query).toBeGreaterThan(0);
  }

  toDatabase.heal();
  await sluice.startWorker();
  expect((await waitUntilDecided(api, token, sale.id, requestId)).status).toBe("SUCCESS");
  await settleAndCheck(sluice.databaseUrl, sluice.redis.url, sale.id);
});
