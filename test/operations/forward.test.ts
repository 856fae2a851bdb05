import { randomUUID } from "node:crypto";
import { type Job, Queue, UnrecoverableError, Worker } from "bullmq";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { forward } from "../../src/operations/forward.js";
import { loadSale } from "../../src/operations/load.js";
import { writeOrders } from "../../src/operations/write-orders.js";
import { queuePrefix } from "../../src/redis/keys.js";
import type { Resources } from "../../src/resources.js";
import { atEndOfFile } from "../support/test-file.js";
import {
  epochInDatabase,
  openProcess,
  openSale,
  queueMany,
  queueOne,
  type Stores,
  startStores,
  type TestSale,
} from "./support.js";

let stores: Stores;
let sluice: Resources;
let other: Resources;
let sale: TestSale;

beforeAll(async () => {
  stores = await startStores();
  [sluice, other] = await Promise.all([openProcess(stores), openProcess(stores)]);
});

beforeEach(async () => {
  sale = await openSale(sluice, { initial: 5_000 });
});

/** A forwarder's turn, when whatever waits has become due. */
async function forwardDue(by = sluice) {
  await stores.sql('UPDATE requests SET "dueAt" = now() WHERE "saleId" = $1', [sale.id]);
  await forward(by, sale.id, await epochInDatabase(stores, sale), 0);
}

const stateOf = async (requestId: string) => (await sluice.queues.states(sale.id, [requestId]))[0];

async function attemptsOf(requestId: string): Promise<number> {
  const [row] = await stores.sql<{ attempts: number }>('SELECT attempts FROM requests WHERE "requestId" = $1', [
    requestId,
  ]);
  return row?.attempts ?? -1;
}

const deadLetters = () =>
  stores.sql('SELECT "requestId", stage, "lastError", attempts FROM dead_letters WHERE "saleId" = $1', [sale.id]);

async function wipeQueue() {
  const keys = await stores.client.keys(`${queuePrefix(sale.id)}:*`);
  if (keys.length > 0) await stores.client.del(...keys);
}

const loadAgain = async () =>
  loadSale(sluice, sale.id, { reason: "drift", mendsEpoch: await epochInDatabase(stores, sale) });

/** Takes the sale's next job as a worker would, and keeps it. */
async function takeJob(): Promise<Job> {
  const options = { connection: { url: stores.redis.url }, prefix: queuePrefix(sale.id), skipVersionCheck: true };
  const worker = new Worker("orders", null, { ...options, autorun: false });
  atEndOfFile(() => worker.close(true));
  const job = await worker.getNextJob("taken");
  if (!job) throw new Error("there is no job");
  return job as Job;
}

/** Adds the request's job by hand, one that is remembered when it is done. */
async function addRemembered(requestId: string) {
  const queue = new Queue("orders", { connection: { url: stores.redis.url }, prefix: queuePrefix(sale.id) });
  atEndOfFile(() => queue.close());
  await queue.add("write-order", { v: 1, saleId: sale.id, requestId }, { jobId: requestId, removeOnComplete: false });
}

describe("a due request", () => {
  it("whose job was lost is added again, five times at most", async () => {
    const requestId = await queueOne(sluice, sale, "anna");
    for (let attempt = 1; attempt <= 5; attempt += 1) {
      await wipeQueue();
      await forwardDue();
      expect(await stateOf(requestId)).toBe("waiting");
      expect(await attemptsOf(requestId)).toBe(attempt);
    }
    await wipeQueue();
    await forwardDue();
    expect(await stateOf(requestId)).toBe("unknown");
    expect(await attemptsOf(requestId)).toBe(5);
    expect(await deadLetters()).toMatchObject([{ requestId, stage: "lost", attempts: 5 }]);
  });

  it("is looked at once it is due, and not before", async () => {
    const requestId = await queueOne(sluice, sale, "anna");
    await wipeQueue();
    await forward(sluice, sale.id, 1, 0);
    expect(await stateOf(requestId)).toBe("unknown");
    await forwardDue();
    expect(await stateOf(requestId)).toBe("waiting");
  });

  it("that a load has lost is added again at once, which counts as no attempt", async () => {
    const requestId = await queueOne(sluice, sale, "anna");
    await stores.redis.flushAll();
    await loadAgain();
    await forward(sluice, sale.id, 2, 0);
    expect(await stateOf(requestId)).toBe("waiting");
    expect(await attemptsOf(requestId)).toBe(0);
    // In the new epoch it is its own fault again.
    await wipeQueue();
    await forwardDue();
    expect(await attemptsOf(requestId)).toBe(1);
  });

  it("is left alone while its job waits, runs or is delayed", async () => {
    const active = await queueOne(sluice, sale, "anna");
    const job = await takeJob();
    expect(job.id).toBe(active);
    const [delayed, waiting] = [await queueOne(sluice, sale, "bert"), await queueOne(sluice, sale, "carla")];
    await (await takeJob()).moveToDelayed(Date.now() + 60_000, "taken");
    await forwardDue();
    expect(await sluice.queues.states(sale.id, [active, delayed, waiting])).toEqual(["active", "delayed", "waiting"]);
    expect(await Promise.all([active, delayed, waiting].map(attemptsOf))).toEqual([0, 0, 0]);
    // None of them is due again at once.
    const due = await stores.sql('SELECT 1 FROM requests WHERE "saleId" = $1 AND "dueAt" < now()', [sale.id]);
    expect(due).toEqual([]);
  });

  it("whose job is remembered as completed is run for real, with or without a load", async () => {
    const requestId = await queueOne(sluice, sale, "anna");
    for (const load of [false, true]) {
      await wipeQueue();
      await addRemembered(requestId);
      await (await takeJob()).moveToCompleted("done", "taken", false);
      expect(await stateOf(requestId)).toBe("completed");
      if (load) await loadAgain();
      await forwardDue();
      expect(await stateOf(requestId)).toBe("waiting");
      expect((await takeJob()).id).toBe(requestId);
    }
  });

  it("whose job has failed gets a dead letter, with what BullMQ remembers of it", async () => {
    const requestId = await queueOne(sluice, sale, "anna");
    await (await takeJob()).moveToFailed(new UnrecoverableError("no use"), "taken", false);
    await forwardDue();
    expect(await deadLetters()).toEqual([{ requestId, stage: "write", lastError: "no use", attempts: 1 }]);
    // It waits for an operator now, whatever is loaded.
    await loadAgain();
    await forwardDue();
    expect(await stateOf(requestId)).toBe("failed");
  });

  it("whose job failed before a load is run for real: the load may have been the cause", async () => {
    const requestId = await queueOne(sluice, sale, "anna");
    await (await takeJob()).moveToFailed(new UnrecoverableError("no use"), "taken", false);
    await loadAgain();
    await forwardDue();
    expect(await stateOf(requestId)).toBe("waiting");
    expect((await takeJob()).id).toBe(requestId);
  });

  it("whose job is no JSON gets a dead letter, and its neighbours are looked at", async () => {
    const [broken, other] = [await queueOne(sluice, sale, "anna"), await queueOne(sluice, sale, "bert")];
    await (await takeJob()).moveToFailed(new UnrecoverableError("no use"), "taken", false);
    await stores.client.hset(`sluice:{${sale.id}}:q:orders:${broken}`, "data", "{");
    await stores.client.del(`sluice:{${sale.id}}:q:orders:${other}`);
    await forwardDue();
    expect(await deadLetters()).toMatchObject([{ requestId: broken, stage: "job" }]);
    expect(await stateOf(other)).toBe("waiting");
  });

  it("that is decided or parked is not looked at", async () => {
    const [decided, parked] = [await queueOne(sluice, sale, "anna"), await queueOne(sluice, sale, "bert")];
    await writeOrders(sluice, sale.id, [decided]);
    await stores.sql('UPDATE requests SET "parkedAt" = now() WHERE "requestId" = $1', [parked]);
    await wipeQueue();
    await forwardDue();
    expect(await sluice.queues.states(sale.id, [decided, parked])).toEqual(["unknown", "unknown"]);
  });

  it("is added once by two forwarders", async () => {
    const requestIds = await queueMany(sluice, sale, 40);
    await wipeQueue();
    await stores.sql('UPDATE requests SET "dueAt" = now() WHERE "saleId" = $1', [sale.id]);
    await Promise.all([forward(sluice, sale.id, 1, 0), forward(other, sale.id, 1, 0)]);
    expect(new Set(await sluice.queues.states(sale.id, requestIds))).toEqual(new Set(["waiting"]));
    expect(await Promise.all(requestIds.map(attemptsOf))).toEqual(Array(40).fill(1));
  });

  it("is found among more than can be seen to at once", async () => {
    await stores.sql(
      `INSERT INTO requests ("saleId", "requestId", "buyerId", "itemId", quantity, epoch, seq, "acceptedAt", "dueAt", "queuedEpoch")
       SELECT $1, gen_random_uuid(), 'crowd-' || n, $2, 1, 1, 1000000 + n, now(), now(), 1 FROM generate_series(1, 1203) n`,
      [sale.id, sale.itemId],
    );
    await forward(sluice, sale.id, 1, 0);
    const rows = await stores.sql<{ requestId: string }>('SELECT "requestId" FROM requests WHERE "saleId" = $1', [
      sale.id,
    ]);
    const states = await sluice.queues.states(
      sale.id,
      rows.map(({ requestId }) => requestId),
    );
    expect(states).toEqual(Array(1_203).fill("waiting"));
  });

  it("of another sale is none of this one's", async () => {
    const neighbour = await openSale(sluice);
    const requestId = randomUUID();
    await Promise.all([sale, neighbour].map((one) => queueOne(sluice, one, "anna", { requestId })));
    await wipeQueue();
    await forwardDue();
    expect(await attemptsOf(requestId)).toBeGreaterThanOrEqual(0);
    const rows = await stores.sql('SELECT "saleId", attempts FROM requests WHERE "requestId" = $1 ORDER BY attempts', [
      requestId,
    ]);
    expect(rows).toEqual([
      { saleId: neighbour.id, attempts: 0 },
      { saleId: sale.id, attempts: 1 },
    ]);
  });
});
