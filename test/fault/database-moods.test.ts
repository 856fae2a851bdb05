import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import pg from "pg";
import { afterEach, beforeAll, describe, expect, test } from "vitest";
import { createTestDatabase } from "../support/database.js";
import { startFatalProxy } from "../support/fatal-proxy.js";
import { settleAndCheck } from "../support/invariants.js";
import { startTestRedis } from "../support/redis.js";
import { prepareSluice, reserve, type TestSluice } from "../support/sluice.js";
import { query } from "../support/sql.js";
import { waitFor } from "../support/wait.js";

let sluice: TestSluice;
let proxy: Awaited<ReturnType<typeof startFatalProxy>>;
let redis: Redis;

beforeAll(async () => {
  const stores = { redis: await startTestRedis(), database: await createTestDatabase() };
  proxy = await startFatalProxy(stores.database.url);
  const env = { SLUICE_TUNING: '{"repairAfterMs":2000,"jobs":{"lockMs":2000,"stalledMs":1000}}' };
  sluice = await prepareSluice({ stores, databaseUrl: proxy.url, env });
  redis = new Redis(stores.redis.url);
  return () => redis.disconnect();
});

afterEach(async () => {
  proxy.state.armed = false;
  await sluice.endProcesses();
});

const OTHERS = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
const endConnections = () => query(sluice.databaseUrl, `SELECT pg_terminate_backend(pid) ${OTHERS}`);
const stockOf = (saleId: string) => redis.hvals(`sluice:{${saleId}}:stock`);
/** How many of its attempts a job has used up. */
const attemptsOf = async (saleId: string, requestId: string) =>
  Number(await redis.hget(`sluice:{${saleId}}:q:orders:${requestId}`, "atm"));
const codeOf = async (answering: ReturnType<typeof reserve>) => (await answering).errors?.[0]?.extensions.code;

test("connections that end in the very moment in which they are handed out end no process", async () => {
  const api = await sluice.startApi();
  const worker = await sluice.startWorker();
  const sale = await sluice.createSale(api, { initial: [500] });
  let gone = false;
  for (const process of [api, worker]) void process.exited.then(() => (gone = true));

  await endConnections();
  proxy.state.armed = true;
  const wanted = proxy.state.ended + 20;
  await waitFor(
    async () => {
      await reserve(api, await sluice.token("buyer", randomUUID()), sale).catch(() => {});
      return gone || proxy.state.ended >= wanted;
    },
    { what: "twenty connections to end", timeoutMs: 40_000 },
  );
  proxy.state.armed = false;
  expect(gone).toBe(false);
  await settleAndCheck(sluice.databaseUrl, sluice.redis.url, sale.id);
});

test("a database that takes no writes uses up no attempt: what is queued waits, and nothing new takes stock", async () => {
  const api = await sluice.startApi();
  const sale = await sluice.createSale(api, { initial: [50] });
  const requestIds = Array.from({ length: 10 }, () => randomUUID());
  for (const [buyer, requestId] of requestIds.entries()) {
    const answer = await reserve(api, await sluice.token("buyer", `waiting-${buyer}`), sale, { requestId });
    expect(answer.data?.reserve.status).toBe("QUEUED");
  }
  const name = new URL(sluice.databaseUrl).pathname.slice(1);
  await query(sluice.databaseUrl, `ALTER DATABASE ${name} SET default_transaction_read_only = on`);
  try {
    await endConnections();
    const worker = await sluice.startWorker();
    await waitFor(
      async () =>
        (await codeOf(reserve(api, await sluice.token("buyer", randomUUID()), sale))) === "SERVICE_UNAVAILABLE",
      { what: "new requests to be refused" },
    );
    const left = await stockOf(sale.id);
    expect(await codeOf(reserve(api, await sluice.token("buyer", "late"), sale))).toBe("SERVICE_UNAVAILABLE");
    expect(await stockOf(sale.id)).toEqual(left);
    // It has tried some of them before it knew, or none: either way, none has used up an attempt.
    await worker.waitForLine(/the database is away/);
    for (const requestId of requestIds) expect(await attemptsOf(sale.id, requestId)).toBe(0);
    expect(await redis.zcard(`sluice:{${sale.id}}:q:orders:failed`)).toBe(0);
  } finally {
    await query(
      sluice.databaseUrl,
      `BEGIN; SET TRANSACTION READ WRITE; ALTER DATABASE ${name} RESET default_transaction_read_only; COMMIT`,
    );
    await endConnections();
  }
  await settleAndCheck(sluice.databaseUrl, sluice.redis.url, sale.id);
  expect(await redis.zcard(`sluice:{${sale.id}}:q:orders:failed`)).toBe(0);
}, 120_000);

describe("rows that others hold for too long", () => {
  test.each([
    {
      field: "openSale(saleId: $id) { state }",
      lock: "SELECT pg_advisory_xact_lock_shared(hashtextextended('sluice:fence:' || $1, 0))",
    },
    {
      field: 'pauseSale(saleId: $id, reason: "a drill") { state }',
      lock: "SELECT 1 FROM sales WHERE id = $1 FOR UPDATE",
    },
  ])("make $field SERVICE_UNAVAILABLE, and its repeat succeeds", async ({ field, lock }) => {
    const api = await sluice.startApi();
    const sale = await sluice.createSale(api, { open: field.startsWith("pause") });
    const operator = await sluice.token("operator", "olga");
    const client = new pg.Client(sluice.databaseUrl);
    await client.connect();
    try {
      await client.query("BEGIN");
      await client.query(lock, [sale.id]);
      const call = () => api.call(operator, `mutation ($id: ID!) { ${field} }`, { id: sale.id });
      expect((await call()).errors?.[0]?.extensions).toMatchObject({
        code: "SERVICE_UNAVAILABLE",
        retryAfterMs: expect.any(Number),
      });
      await client.query("ROLLBACK");
      expect((await call()).errors).toBeUndefined();
    } finally {
      await client.end();
    }
  });
});

test("neither a refused row nor a refused command puts a buyer's id into the logs", async () => {
  const api = await sluice.startApi();
  const sale = await sluice.createSale(api, { initial: [50] });
  await query(sluice.databaseUrl, `ALTER TABLE requests ADD CONSTRAINT poison CHECK ("buyerId" <> 'poison-buyer-77')`);
  await reserve(api, await sluice.token("buyer", "poison-buyer-77"), sale);
  await redis.call("ACL", "SETUSER", "default", "-evalsha", "-eval");
  try {
    await reserve(api, await sluice.token("buyer", "raw-buyer-99"), sale);
  } finally {
    await redis.call("ACL", "SETUSER", "default", "+@all");
  }
  await api.waitForLine(/can't take it/);
  await api.waitForLine(/NOPERM/);
  expect(api.lines.filter((line) => /poison-buyer-77|raw-buyer-99/.test(line))).toEqual([]);
});
