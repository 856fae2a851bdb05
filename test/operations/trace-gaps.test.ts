import { randomUUID } from "node:crypto";
import { type Job, UnrecoverableError, Worker } from "bullmq";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { ROWS_AT_MOST } from "../../src/db/trace.js";
import { orderIdOf } from "../../src/domain/ids.js";
import { bury } from "../../src/operations/bury.js";
import { loadSale } from "../../src/operations/load.js";
import { pay } from "../../src/operations/pay.js";
import { traceRequest } from "../../src/operations/trace-request.js";
import { queuePrefix } from "../../src/redis/keys.js";
import type { Resources } from "../../src/resources.js";
import { atEndOfFile } from "../support/test-file.js";
import { holdLoad } from "./hold.js";
import {
  acceptOnly,
  changeUntold,
  epochInDatabase,
  openProcess,
  openSale,
  order,
  queueOne,
  type Stores,
  startStores,
  type TestSale,
} from "./support.js";

let stores: Stores;
let sluice: Resources;
let sale: TestSale;

beforeAll(async () => {
  stores = await startStores();
  sluice = await openProcess(stores);
});

beforeEach(async () => {
  sale = await openSale(sluice, { initial: 10 });
});

const key = (name: string) => `sluice:{${sale.id}}:${name}`;
const client = () => stores.client;
const sql = (text: string, requestId: string) => stores.sql(text, [requestId]);
const loadAgain = async () =>
  loadSale(sluice, sale.id, { reason: "drift", mendsEpoch: await epochInDatabase(stores, sale) });

async function expectMissing(requestId: string, sentences: readonly (string | RegExp)[]): Promise<void> {
  const found = await traceRequest(sluice, { saleId: sale.id, requestId });
  const worded = sentences.map((text) => (typeof text === "string" ? text : expect.stringMatching(text)));
  expect(found?.missing).toEqual(worded);
  expect(found?.summary).toContain(sentences.length === 1 ? found?.missing[0] : "things are not as they should be");
}

/** Takes the sale's next job as a worker would, and keeps it. */
async function takeJob(): Promise<Job> {
  const options = { connection: { url: stores.redis.url }, prefix: queuePrefix(sale.id), skipVersionCheck: true };
  const worker = new Worker("orders", null, { ...options, autorun: false });
  atEndOfFile(() => worker.close(true));
  return (await worker.getNextJob("taken")) as Job;
}

const due = (what: string) => new RegExp(`^${what} at 20\\d\\d-\\S+Z\\.$`);

describe("a request on its way says what is missing where", () => {
  it("accepted, never journaled", async () => {
    const { requestId } = await acceptOnly(sluice, sale, "anna");
    await expectMissing(requestId, [due("Accepted in Redis, never journaled: the forwarder will journal it")]);
    await client().hset(key(`r:${requestId}`), "at", Date.now() - 60_000);
    await expectMissing(requestId, [
      /^Accepted in Redis, never journaled: the forwarder was to .*: does a worker run\?\.$/,
    ]);
    await client().zrem(key("pending"), requestId);
    await expectMissing(requestId, [/never journaled: it does not stand in the line, so nobody will; reload the sale/]);
    await loadAgain();
    await expectMissing(requestId, [/never journaled: a load has forgotten it since \(epoch 1, now 2\)/]);
  });

  it("durable, but in no queue", async () => {
    const requestId = await queueOne(sluice, sale, "anna");
    await client().del(key(`q:orders:${requestId}`), key("q:orders:wait"));
    await expectMissing(requestId, [due("Durable but in no queue: the forwarder will add it")]);
    await sql(`UPDATE requests SET "dueAt" = now() - interval '1 minute' WHERE "requestId" = $1`, requestId);
    await expectMissing(requestId, [
      /^Durable but in no queue: the forwarder was to add it at .*: does a worker run\?\.$/,
    ]);
  });

  it("durable, its job without a place in the queue, for the first time and for the last", async () => {
    const requestId = await queueOne(sluice, sale, "anna");
    await client().del(key("q:orders:wait"));
    await expectMissing(requestId, [due("Durable but in no queue: the forwarder will add it")]);
    await sql('UPDATE requests SET attempts = 5 WHERE "requestId" = $1', requestId);
    await expectMissing(requestId, [due("Durable but in no queue: the forwarder will write a dead letter")]);
  });

  it("failed for good, and nobody has said so", async () => {
    const requestId = await queueOne(sluice, sale, "anna");
    await (await takeJob()).moveToFailed(new UnrecoverableError("no use"), "taken", false);
    const words = "Its job failed for good, and it has no dead letter: the forwarder will";
    await expectMissing(requestId, [due(`${words} write one`)]);
    const found = await traceRequest(sluice, { saleId: sale.id, requestId });
    expect(found?.entries.filter(({ source }) => source === "QUEUE").map(({ what }) => what)).toEqual([
      "its job was added",
      "its job was begun",
      "its job failed for good",
      "its job is failed",
    ]);
    await client().hset(key(`q:orders:${requestId}`), "data", "{");
    await loadAgain();
    // The load made it due at once, and is no fault of the request.
    await expectMissing(requestId, [/^Its job failed for good, .* was to add it again at .*: does a worker run\?\.$/]);
  });

  it("parked without a letter, a letter without being parked, and in line all the same", async () => {
    const requestId = await queueOne(sluice, sale, "anna");
    await bury(sluice, sale.id, [{ requestId, stage: "write", lastError: "no luck", attempts: 5 }]);
    await expectMissingNothing(requestId);
    await client().zadd(key("pending"), 1_000_001, requestId);
    await expectMissing(requestId, ["It stands in the line, though it is parked."]);
    await sql(`UPDATE requests SET "parkedAt" = NULL WHERE "requestId" = $1`, requestId);
    await expectMissing(requestId, ["It has an open dead letter, but is not parked."]);
    await client().zrem(key("pending"), requestId);
    await sql(`UPDATE requests SET "parkedAt" = now() WHERE "requestId" = $1`, requestId);
    await sql(`DELETE FROM dead_letters WHERE "requestId" = $1`, requestId);
    await expectMissing(requestId, ["It is parked, but has no open dead letter: nobody will see to it."]);
  });

  it("not in the line, not the buyer's hold", async () => {
    const requestId = await queueOne(sluice, sale, "anna");
    await client().zrem(key("pending"), requestId);
    await client().hdel(key("holders"), "anna");
    const notInLine = "It waits to be decided, but does not stand in the line.";
    await expectMissing(requestId, [notInLine, "The buyer's hold is gone."]);
    await client().hset(key("holders"), "anna", "another");
    await expectMissing(requestId, [notInLine, "The buyer's hold is another request, another."]);
  });
});

describe("an order says what is missing where", () => {
  const set = (requestId: string, what: string) => sql(`UPDATE requests SET ${what} WHERE "requestId" = $1`, requestId);

  it("no order, no request, or another decision", async () => {
    const requestId = await order(sluice, sale, "anna");
    await set(requestId, "outcome = 'SOLD_OUT', reason = 'STOCK_GONE'");
    await expectMissing(requestId, ["There is an order, but it was decided SOLD_OUT."]);
    await sql('DELETE FROM requests WHERE "requestId" = $1', requestId);
    await expectMissing(requestId, ["There is an order, but no request that it is of."]);
    const other = await order(sluice, sale, "bert");
    await sql('DELETE FROM orders WHERE "requestId" = $1', other);
    await expectMissing(other, ["It was decided ORDERED, but there is no order."]);
  });

  it("a movement, a payment", async () => {
    const requestId = await order(sluice, sale, "anna");
    await client().hset(key(`r:${requestId}`), "stage", "PAID", "rank", 40);
    await sql(
      `UPDATE orders SET status = 'PAID', "paidAt" = now(), "paymentRef" = 'pay_nothing' WHERE "requestId" = $1`,
      requestId,
    );
    await expectMissing(requestId, [
      "The order is PAID, but its units never made the movement SELL.",
      "The order is PAID, but no payment of it is on record.",
    ]);
  });

  it("the request itself, where only money came for it", async () => {
    const requestId = randomUUID();
    await pay(sluice, { orderId: orderIdOf(sale.id, requestId), paymentRef: "pay_stray", amountMinor: 1 });
    const found = await traceRequest(sluice, { saleId: sale.id, requestId });
    expect(found).toMatchObject({ buyerId: null, stage: null, missing: ["No store knows the request itself."] });
    expect(found?.summary).toMatch(/^How far it has come can't be told\. No store/);
  });

  it("an event that Redis has yet to hear, and a Redis that is behind, or ahead", async () => {
    const requestId = await order(sluice, sale, "anna", { quantity: 2 });
    await changeUntold(sluice, sale, requestId);
    await expectMissing(requestId, ["An event is not applied: Redis has yet to hear of CANCELLED, and to get 2 back."]);
    await sql('UPDATE request_events SET "appliedAt" = now() WHERE "requestId" = $1', requestId);
    await expectMissing(requestId, ["Redis still has it as ORDERED.", "It is over, but still is the buyer's hold."]);
    await client().hset(key(`r:${requestId}`), "stage", "FAILED", "rank", 90);
    await client().hdel(key("holders"), "anna");
    await client().zadd(key("pending"), 1, requestId);
    await expectMissing(requestId, [
      "Redis has it as FAILED, which the database does not: there it is CANCELLED.",
      "It stands in the line, though it is decided.",
    ]);
  });

  it("how much there is that is not shown", async () => {
    const requestId = await order(sluice, sale, "anna");
    await sql(
      `INSERT INTO dead_letters ("saleId", "requestId", stage, "lastError", attempts, status)
       SELECT '${sale.id}', $1, 'lost', '', 0, 'REPLAYED' FROM generate_series(1, ${ROWS_AT_MOST + 1})`,
      requestId,
    );
    await expectMissing(requestId, [`Of its dead letters only the first ${ROWS_AT_MOST} are shown.`]);
  });
});

describe("a sale's keys that are gone are named", () => {
  it("the request's own: deleted, damaged, of another loading, expired long after the end", async () => {
    const requestId = await order(sluice, sale, "anna");
    const own = key(`r:${requestId}`);
    await client().hset(own, "epoch", 7);
    await expectMissing(requestId, ["Redis has it of epoch 7, and the sale of 1: reload the sale."]);
    await client().hset(own, "quantity", "many");
    await expectMissing(requestId, ["Its key in Redis can't be read: reload the sale."]);
    await client().del(own);
    await expectMissing(requestId, ["Redis does not know it, though the sale is loaded: reload the sale."]);
    await client().del(key("sale"));
    await sql(
      `UPDATE sales SET "opensAt" = now() - interval '9 days', "closesAt" = now() - interval '8 days' WHERE id = $1`,
      sale.id,
    );
    await expectMissing(requestId, ["Its key in Redis has expired: the sale closed more than a week ago."]);
  });

  it("the sale's: lost, or being loaded", async () => {
    const requestId = await order(sluice, sale, "anna");
    await client().del(key("holders"));
    await expectMissing(requestId, [/^The sale is not in Redis, or not whole/]);
    const held = holdLoad(sluice, "finish");
    const loading = loadSale(held.resources, sale.id, { reason: "damaged", mendsEpoch: 1 });
    await held.reached;
    await expectMissing(requestId, ["The sale is being loaded into Redis right now."]);
    const unjournaled = randomUUID();
    await client().hset(key(`r:${unjournaled}`), await client().hgetall(key(`r:${requestId}`)));
    await expectMissing(unjournaled, [
      "Accepted in Redis, never journaled: a load of the sale will forget it.",
      "The sale is being loaded into Redis right now.",
    ]);
    held.letGo();
    await loading;
    await expectMissingNothing(requestId);
  });
});

async function expectMissingNothing(requestId: string): Promise<void> {
  expect((await traceRequest(sluice, { saleId: sale.id, requestId }))?.missing).toEqual([]);
}

it("an event that a load has taken in is nothing that Redis has yet to hear", async () => {
  const requestId = await order(sluice, sale, "anna");
  await changeUntold(sluice, sale, requestId);
  await expectMissing(requestId, [/^An event is not applied: Redis has yet to hear of CANCELLED/]);
  await loadAgain();
  await expectMissingNothing(requestId);
});
