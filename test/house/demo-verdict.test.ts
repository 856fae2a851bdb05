/** The verdict of the demo has teeth: a real crowd, a sale at rest, then damage, and the one invariant is called by name. */
import { randomUUID } from "node:crypto";
import { setMaxListeners } from "node:events";
import { Redis } from "ioredis";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Buyer, countHabits, gatherCrowd } from "../../src/cli/demo/crowd.js";
import { type Heard, hearNothing } from "../../src/cli/demo/heard.js";
import { describeResult, exitStatusOf, type RunResult } from "../../src/cli/demo/report.js";
import { asJson } from "../../src/cli/demo/report-json.js";
import type { RunningSluice } from "../../src/cli/demo/running-sluice.js";
import { settle } from "../../src/cli/demo/settle.js";
import { openSockets, type Sockets } from "../../src/cli/demo/sockets.js";
import { openTill, type Till } from "../../src/cli/demo/till.js";
import { prove, type Verdict, waitForRest } from "../../src/cli/demo/verdict.js";
import { visit } from "../../src/cli/demo/visit.js";
import { connectDatabase, type Database } from "../../src/db/client.js";
import { connectRedis, type RedisLink } from "../../src/redis/link.js";
import type { NodeProcess } from "../support/processes.js";
import { type Api, prepareSluice, type TestSale, type TestSluice } from "../support/sluice.js";
import { query } from "../support/sql.js";
import { atEndOfFile } from "../support/test-file.js";

/** What is counted here must not depend on how busy the machine is: nothing is given up for being late. */
const UNHURRIED = JSON.stringify({
  deadlines: { requestMs: 50_000, journalMs: 40_000, redisCommandMs: 30_000 },
  sql: { statementMs: 30_000, lockMs: 20_000 },
});
const BUYERS = 100;
const UNITS = 20;
/** What an order that has expired has in its columns. */
const EXPIRED = `status = 'EXPIRED', "activeBuyerId" = NULL, reason = 'PAYMENT_EXPIRED', "paymentRef" = NULL, "paidAt" = NULL`;
const WEBHOOK_SECRET = "what the tests sign webhooks with";

let sluice: TestSluice;
let api: Api;
let worker: NodeProcess;
let running: RunningSluice;
let stores: { reads: Database; redis: RedisLink; sockets: Sockets; till: Till };
let client: Redis;
let sale: TestSale;
let crowd: Buyer[];
let heard: Heard;

beforeAll(async () => {
  sluice = await prepareSluice({ env: { SLUICE_TUNING: UNHURRIED, PAYMENT_WEBHOOK_SECRET: WEBHOOK_SECRET } });
  [api, worker] = await Promise.all([sluice.startApi(), sluice.startWorker()]);
  running = {
    dataDir: "/nonexistent",
    apiUrl: api.url,
    databaseUrl: sluice.databaseUrl,
    redisUrl: sluice.redis.url,
    webhookSecret: WEBHOOK_SECRET,
    backlogLimit: 10_000,
    token: (role, userId) => sluice.token(role, userId),
  };
  const onError = () => {};
  const timeouts = { waitMs: 30_000, statementMs: 30_000, lockMs: 20_000, idleInTransactionMs: 30_000 };
  stores = {
    reads: connectDatabase({ url: sluice.databaseUrl, name: "verdict", pool: 2, ...timeouts, onError }),
    redis: connectRedis({ url: sluice.redis.url, name: "verdict", commandTimeoutMs: 30_000, onError }),
    sockets: openSockets(api.url),
    till: await openTill(running, "verdict", new AbortController().signal),
  };
  client = new Redis(sluice.redis.url);
  atEndOfFile(async () => {
    client.disconnect();
    stores.sockets.close();
    stores.till.close();
    await Promise.all([stores.redis.close(), stores.reads.$disconnect()]);
  });
  await stores.redis.whenUsable(30_000);
  // A second valid order of a buyer is what the database itself refuses.
  await sql('DROP INDEX "orders_saleId_activeBuyerId_key"');
  // And so is money that can't be given back.
  await sql('ALTER TABLE payments DROP CONSTRAINT "payments_useless_to_refund"');
});

const sql = (text: string, values: unknown[] = []) => query(sluice.databaseUrl, text, values);

beforeEach(async () => {
  sale = await sluice.createSale(api, { initial: [UNITS], maxPerBuyer: 2 });
  crowd = await gatherCrowd(running, randomUUID().slice(0, 6), BUYERS, UNITS);
  heard = hearNothing();
  const over = AbortSignal.timeout(50_000);
  setMaxListeners(0, over);
  const { sockets, till } = stores;
  const payers = new Map<string, Promise<void>>();
  const scene = { till, heard, saleId: sale.id, windowSeconds: 900, calm: over, over };
  // Whoever gets one pays for it: what becomes of the others is for the whole demo, beside `npm start`.
  const onReserved = (buyer: Buyer, requestId: string) => {
    const winner = { buyer, requestId, nth: payers.size };
    if (!payers.has(requestId)) payers.set(requestId, settle(scene, winner, "pays"));
  };
  const storm = { apiUrl: api.url, sockets, heard, saleId: sale.id, itemId: itemId(), onReserved, over };
  const followings = await Promise.all(crowd.map((buyer) => visit(storm, buyer)));
  for (const following of followings) following?.leave();
  await Promise.all(payers.values());
  expect(await waitForRest(stores, sale.id, 50_000)).toMatchObject({ findings: [], uncompared: null });
});

const itemId = () => sale.items[0]?.id ?? "";

/** The verdict as a run of the demo comes to it, and how it ends. */
async function verdictNow(): Promise<{ verdict: Verdict; broken: string[]; result: RunResult }> {
  const verdict = await prove(stores, { saleId: sale.id, itemId: itemId() }, heard);
  const broken = verdict.invariants.filter(({ breaches }) => breaches.length > 0).map(({ name }) => name);
  const result: RunResult = {
    run: "test",
    target: { saleId: sale.id, itemId: itemId(), units: UNITS, windowSeconds: 900 },
    buyers: BUYERS,
    habits: countHabits(crowd),
    heard,
    kill: null,
    verdict,
    obstacles: [],
  };
  return { verdict, broken, result };
}

/** Everything that a run can tell of it says the same. */
function expectTold(result: RunResult, broken: readonly string[]): void {
  const text = describeResult(result, (_kind, plain) => plain);
  expect([...text.matchAll(/^ {2}([SUCTR]) {2}BROKEN {2}/gm)].map(([, name]) => name)).toEqual(broken);
  expect([...text.matchAll(/^ {2}([SUCTR]) {2}holds {3}/gm)]).toHaveLength(5 - broken.length);
  expect(Math.max(...text.split("\n").map((line) => line.length))).toBeLessThanOrEqual(80);
  expect(exitStatusOf(result)).toBe(broken.length === 0 ? 0 : 1);
  const json = asJson(result) as { ok: boolean; verdict: { invariants: Record<string, { holds: boolean }> } };
  expect(json.ok).toBe(broken.length === 0);
  expect(Object.keys(json.verdict.invariants).filter((name) => !json.verdict.invariants[name]?.holds)).toEqual(broken);
}

test("a sale that went well holds in all five, and nobody was left without an answer", async () => {
  const { verdict, broken, result } = await verdictNow();
  expect(broken).toEqual([]);
  expectTold(result, []);
  expect(verdict).toMatchObject({ units: UNITS, sold: UNITS, oversold: 0, buyersTwice: 0, withoutEnd: 0 });
  expect(heard.endings).toMatchObject({ unanswered: 0, refused: 0, left: 1 });
  expect(heard.hungUp).toBe(2);
  expect(heard.acknowledged.size).toBeGreaterThanOrEqual(UNITS - 1);
  expect(Object.keys(heard.errors)).toEqual([]);
  // Who has hung up for good doesn't pay either.
  expect(heard.settled).toMatchObject({ missed: 0, unanswered: 0 });
  const paid = heard.settled.paid;
  expect(paid).toBeGreaterThanOrEqual(UNITS - 1);
  expect(verdict).toMatchObject({
    orders: { unitsPaid: paid, unpaid: UNITS - paid, cancelled: 0, expired: 0, cameBack: 0 },
    money: { onRecord: paid, reported: paid, toGiveBack: 0 },
  });
  expect(Object.keys(heard.paidBy).sort()).toEqual(["mutation", "webhook"]);
});

test("a run that was not carried through ends with 1, whatever holds", async () => {
  const { result } = await verdictNow();
  expect(exitStatusOf({ ...result, obstacles: ["The run was not carried through: 3 buyers had no answer."] })).toBe(1);
});

describe("damage is called by name:", () => {
  /** What is said to be wrong under a letter. */
  const said = (verdict: Verdict, letter: string) =>
    verdict.invariants.find(({ name }) => name === letter)?.breaches.map(({ what, count }) => [what, count]);

  test("R, when a payment that was acknowledged is gone, and a repeat of it is not what brings it back", async () => {
    const [paymentRef] = heard.payments.keys();
    await sql('DELETE FROM payments WHERE "paymentRef" = $1', [paymentRef]);
    const { verdict, broken, result } = await verdictNow();
    expect(broken).toContain("R");
    expect(said(verdict, "R")).toEqual([["payments that were acknowledged and are not on record", 1]]);
    expect(verdict.money).toMatchObject({ onRecord: heard.payments.size - 1, reported: heard.payments.size });
    expectTold(result, broken);
  });

  test("R, when a payment paid nobody: its order is another one's, or not paid at all", async () => {
    const [first, second] = heard.payments.keys();
    await sql(`UPDATE orders SET "paymentRef" = 'another' WHERE "paymentRef" = $1`, [first]);
    await sql(`UPDATE orders SET ${EXPIRED} WHERE "paymentRef" = $1`, [second]);
    const { verdict, broken, result } = await verdictNow();
    expect(broken).toEqual(expect.arrayContaining(["S", "R"]));
    expect(said(verdict, "R")).toContainEqual(["payments that paid nobody, or can't be given back", 2]);
    expectTold(result, broken);
  });

  test("R, when money that could not buy is not to be given back, and when nobody has paid what is on record", async () => {
    const report = { orderId: `${sale.id}.${randomUUID()}`, paymentRef: randomUUID(), amountMinor: 1 };
    expect(await stores.till.report("webhook", report)).toBe("REFUND_DUE");
    await sql('UPDATE payments SET "refundDueAt" = NULL WHERE "paymentRef" = $1', [report.paymentRef]);
    const { verdict, broken, result } = await verdictNow();
    expect(broken).toContain("R");
    expect(said(verdict, "R")).toEqual([
      ["payments on record that nobody has reported", 1],
      ["payments that paid nobody, or can't be given back", 1],
    ]);
    expectTold(result, broken);
  });

  test("R, when a payment is told otherwise than it is on record", async () => {
    const [[paymentRef, payment] = []] = heard.payments;
    heard.payments.set(paymentRef ?? "", { ...payment!, told: ["REFUND_DUE"] });
    const { verdict, broken } = await verdictNow();
    expect(broken).toEqual(["R"]);
    expect(said(verdict, "R")).toEqual([["payments that are on record as something else", 1]]);
  });

  test("S, when an order has ended and its units were not released", async () => {
    await sql(
      `UPDATE orders SET ${EXPIRED} WHERE "saleId" = $1 AND "requestId" =
         (SELECT min("requestId"::text)::uuid FROM orders WHERE "saleId" = $1)`,
      [sale.id],
    );
    const { verdict, broken, result } = await verdictNow();
    expect(broken).toContain("S");
    expect(broken).not.toContain("C");
    expect(said(verdict, "S")).toContainEqual(["units of an item, by its orders", 1]);
    expectTold(result, broken);
  });

  test("T, when an order's time has passed and it is still unpaid", async () => {
    const make = (until: string) =>
      sql(
        `UPDATE orders SET status = 'PENDING_PAYMENT', "paymentRef" = NULL, "paidAt" = NULL, "payBy" = now() + $2::interval
         WHERE "saleId" = $1`,
        [sale.id, until],
      );
    await make("1 hour");
    expect((await verdictNow()).broken).not.toContain("T");
    // Somebody would see to it.
    worker.kill();
    await worker.exited;
    await make("-1 minute");
    const { verdict, broken, result } = await verdictNow();
    worker = await sluice.startWorker();
    expect(broken).toContain("T");
    expect(said(verdict, "T")).toEqual([["orders whose time has passed and that have not ended", UNITS]]);
    expectTold(result, broken);
  });

  test("S, when an order is gone", async () => {
    await sql(
      `DELETE FROM orders WHERE "saleId" = $1 AND "requestId" = (SELECT min("requestId"::text)::uuid FROM orders WHERE "saleId" = $1)`,
      [sale.id],
    );
    const { verdict, broken, result } = await verdictNow();
    expect(broken).toContain("S");
    expect(broken).not.toContain("C");
    expect(verdict.sold).toBe(UNITS - 1);
    expectTold(result, broken);
  });

  test("U, when a buyer has an order that no request of his became", async () => {
    await sql(
      `INSERT INTO orders ("saleId", "requestId", "buyerId", "itemId", quantity, "totalMinor", currency, status, reason, "payBy")
       SELECT "saleId", gen_random_uuid(), "buyerId", "itemId", quantity, "totalMinor", currency, 'CANCELLED',
              'CANCELLED_BY_BUYER', "payBy"
       FROM orders WHERE "saleId" = $1 LIMIT 1`,
      [sale.id],
    );
    const { broken, result } = await verdictNow();
    expect(broken).toContain("U");
    expectTold(result, broken);
  });

  test("U, when a buyer has two valid orders, and more was sold than there was", async () => {
    await sql(
      `INSERT INTO orders ("saleId", "requestId", "buyerId", "activeBuyerId", "itemId", quantity, "totalMinor", currency, "payBy")
       SELECT "saleId", gen_random_uuid(), "buyerId", "buyerId", "itemId", quantity, "totalMinor", currency, "payBy"
       FROM orders WHERE "saleId" = $1 LIMIT 1`,
      [sale.id],
    );
    const { verdict, broken, result } = await verdictNow();
    expect(broken).toEqual(["S", "U"]);
    expect(verdict).toMatchObject({ sold: UNITS + 1, oversold: 1, buyersTwice: 1 });
    expectTold(result, broken);
  });

  test("C, when Redis offers a unit that is sold", async () => {
    await client.hincrby(`sluice:{${sale.id}}:stock`, itemId(), 1);
    const { broken, result } = await verdictNow();
    expect(broken).toEqual(["C"]);
    expectTold(result, broken);
  });

  test("C, when what Redis offers is no number", async () => {
    await client.hset(`sluice:{${sale.id}}:stock`, itemId(), "many");
    const { broken, result } = await verdictNow();
    expect(broken).toEqual(["C"]);
    expectTold(result, broken);
  });

  test("T, when a request is left undecided", async () => {
    await sql(
      `UPDATE requests SET outcome = NULL, "decidedAt" = NULL WHERE "saleId" = $1 AND "requestId" =
         (SELECT min("requestId"::text)::uuid FROM requests WHERE "saleId" = $1)`,
      [sale.id],
    );
    const { verdict, broken, result } = await verdictNow();
    expect(broken).toContain("T");
    expect(verdict.withoutEnd).toBe(1);
    expectTold(result, broken);
  });

  test("R, when a request that was told QUEUED has no row", async () => {
    const requestId = randomUUID();
    heard.acknowledged.set(requestId, crowd[0]!);
    const { verdict, broken, result } = await verdictNow();
    expect(broken).toEqual(["R"]);
    expect(verdict.invariants.find(({ name }) => name === "R")?.breaches).toEqual([
      {
        what: "requests that were acknowledged and are not stored",
        count: 1,
        shown: [{ id: requestId, expected: "a row", actual: "none" }],
      },
    ]);
    expectTold(result, broken);
  });

  test("R, when a request that is sent again is told of another end", async () => {
    const [requestId] = [...heard.acknowledged.keys()];
    await client.hset(`sluice:{${sale.id}}:r:${requestId}`, "stage", "FAILED", "rank", "90");
    const { broken, result } = await verdictNow();
    expect(broken).toEqual(["R"]);
    expectTold(result, broken);
  });

  test("R, when a request is answered that was sent again with other contents", async () => {
    const [requestId] = [...heard.acknowledged.keys()];
    await client.hset(`sluice:{${sale.id}}:r:${requestId}`, "quantity", "2");
    const { verdict, broken, result } = await verdictNow();
    expect(broken).toContain("R");
    const breaches = verdict.invariants.find(({ name }) => name === "R")?.breaches;
    expect(breaches?.map(({ what }) => what)).toContain("requests that were sent again with other contents");
    expectTold(result, broken);
  });
});
