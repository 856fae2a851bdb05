/** What was done, and nobody was told: faults 1 and 8 of docs/faults.md. */
import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import pg from "pg";
import { beforeAll, expect, test } from "vitest";
import { createTestDatabase } from "../support/database.js";
import { settleAndCheck } from "../support/invariants.js";
import { startTestRedis } from "../support/redis.js";
import {
  type Api,
  prepareSluice,
  reserve,
  type TestSale,
  type TestSluice,
  waitUntilDecided,
} from "../support/sluice.js";
import { query } from "../support/sql.js";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy.js";
import { atEndOfFile } from "../support/test-file.js";
import { waitFor } from "../support/wait.js";
import { hearsSuccess, listen, QUICK, queue, recordsOf, tuned } from "./drills.js";

let sluice: TestSluice;
let api: Api;
let toRedis: TcpProxy;
let toDatabase: TcpProxy;
let redis: Redis;
let gate: pg.Client;

beforeAll(async () => {
  const [server, database] = await Promise.all([startTestRedis(), createTestDatabase()]);
  [toRedis, toDatabase] = await Promise.all([startTcpProxy(server.url), startTcpProxy(database.url)]);
  sluice = await prepareSluice({
    stores: { redis: server, database },
    redisUrl: toRedis.url(server.url),
    databaseUrl: toDatabase.url(database.url),
    // A COMMIT that is kept waiting is not to run into the timeouts.
    env: tuned({ ...QUICK, sql: { lockMs: 10_000, statementMs: 10_000 } }),
  });
  await query(
    sluice.databaseUrl,
    `CREATE FUNCTION pass_gate() RETURNS trigger LANGUAGE plpgsql AS $$
     BEGIN PERFORM pg_advisory_xact_lock_shared(4711); RETURN NULL; END $$;
     CREATE CONSTRAINT TRIGGER pass_gate AFTER INSERT ON requests DEFERRABLE INITIALLY DEFERRED
       FOR EACH ROW EXECUTE FUNCTION pass_gate();
     CREATE CONSTRAINT TRIGGER pass_gate AFTER INSERT ON orders DEFERRABLE INITIALLY DEFERRED
       FOR EACH ROW EXECUTE FUNCTION pass_gate();`,
  );
  redis = new Redis(server.url);
  gate = new pg.Client({ connectionString: sluice.databaseUrl, application_name: "gate" });
  await gate.connect();
  atEndOfFile(async () => {
    redis.disconnect();
    await gate.end();
  });
  api = await sluice.startApi();
});

const stockOf = async (sale: TestSale) => (await redis.hvals(`sluice:{${sale.id}}:stock`)).map(Number);

/** Has a COMMIT done and its reply lost: it waits at the gate, from where on the network swallows what the server says. */
async function loseCommit(begin: () => Promise<unknown>, isDone: () => Promise<boolean>): Promise<void> {
  await gate.query("SELECT pg_advisory_lock(4711)");
  const beginning = begin();
  await waitFor(
    async () => {
      // Of a COMMIT, or of a statement that is a transaction of its own: everything else of it is done.
      const waiting = await gate.query(
        `SELECT 1 FROM pg_locks l JOIN pg_stat_activity a USING (pid)
         WHERE a.datname = current_database() AND l.locktype = 'advisory' AND l.objid = 4711 AND NOT l.granted
           AND a.application_name LIKE 'sluice:%'`,
      );
      return waiting.rows.length > 0;
    },
    { what: "a COMMIT to wait", timeoutMs: 20_000 },
  );
  toDatabase.swallowReplies();
  await gate.query("SELECT pg_advisory_unlock(4711)");
  await waitFor(isDone, { what: "the COMMIT to be done" });
  toDatabase.cut({ once: true });
  toDatabase.heal();
  await beginning;
}

test("a request whose row was committed, and whose COMMIT went unanswered, is found there; so is its order", async () => {
  const sale = await sluice.createSale(api, { initial: [10] });
  const [token, requestId] = [await sluice.token("buyer", "committed"), randomUUID()];
  const has = async (table: "requests" | "orders") =>
    (await query(sluice.databaseUrl, `SELECT 1 FROM ${table} WHERE "requestId" = $1`, [requestId])).length > 0;

  await loseCommit(
    async () => expect((await reserve(api, token, sale, { requestId })).data?.reserve.status).toBe("PENDING"),
    () => has("requests"),
  );
  const again = await waitFor(async () => (await reserve(api, token, sale, { requestId })).data?.reserve, {
    what: "an answer",
  });
  expect(again).toMatchObject({ status: "QUEUED", reservation: { requestId } });
  expect(await stockOf(sale)).toEqual([9]);

  const heard = listen(api, sale, { token, requestId });
  await loseCommit(
    () => sluice.startWorker(),
    () => has("orders"),
  );
  await hearsSuccess(heard);
  expect((await waitUntilDecided(api, token, sale.id, requestId)).status).toBe("SUCCESS");
  await settleAndCheck(sluice.databaseUrl, sluice.redis.url, sale.id);
  expect(await recordsOf(sluice, sale)).toEqual({ orders: 1, events: 0, LOCK: 1 });
});

test("a reservation that Redis made, and whose reply was lost, has taken its units once, and is answered when it is sent again", async () => {
  const sale = await sluice.createSale(api, { initial: [10] });
  // The script is known to the server, and the way to it is good.
  await queue(sluice, api, sale);
  const [token, requestId] = [await sluice.token("buyer", "unheard"), randomUUID()];
  toRedis.swallowReplies();
  const lost = reserve(api, token, sale, { requestId, quantity: 2 });
  await waitFor(async () => (await stockOf(sale))[0] === 7, { what: "the script to run" });
  expect((await lost).errors?.[0]?.extensions.code).toBe("SERVICE_UNAVAILABLE");
  toRedis.heal();
  const again = await waitFor(async () => (await reserve(api, token, sale, { requestId, quantity: 2 })).data?.reserve, {
    what: "an answer",
  });
  // The forwarder may have been quicker.
  expect(["QUEUED", "DECIDED"]).toContain(again.status);
  expect(again.reservation).toMatchObject({ requestId, quantity: 2 });
  expect((await reserve(api, token, sale)).data?.reserve.status).toBe("ALREADY_RESERVED");
  await settleAndCheck(sluice.databaseUrl, sluice.redis.url, sale.id);
  expect(await stockOf(sale)).toEqual([7]);
  expect(await recordsOf(sluice, sale)).toEqual({ orders: 2, events: 0, LOCK: 2 });
});
