import { randomUUID } from "node:crypto";
import { beforeAll, describe, expect, it } from "vitest";
import { writeOrdersThatFit } from "../../src/db/fitting-orders.js";
import { loadSale } from "../../src/operations/load.js";
import { relay } from "../../src/operations/relay.js";
import { type WriteResult, writeOrders } from "../../src/operations/write-orders.js";
import type { Resources } from "../../src/resources.js";
import { waitFor } from "../support/wait.js";
import { transactionOnTheSide, waitForBlocked } from "./side.js";
import {
  ask,
  changeUntold,
  compensate,
  epochInDatabase,
  inRedis,
  journalByHand,
  openProcess,
  openSale,
  order,
  queueMany,
  queueOne,
  remaining,
  type Stores,
  startStores,
  type TestSale,
} from "./support.js";

let stores: Stores;
let sluice: Resources;
let other: Resources;

beforeAll(async () => {
  stores = await startStores();
  [sluice, other] = await Promise.all([openProcess(stores), openProcess(stores)]);
});

const kinds = (results: readonly WriteResult[]) =>
  results.map((result) => (result.kind === "decided" ? result.decision.outcome : result.kind));

const ordersOf = async (sale: TestSale) =>
  (await stores.sql('SELECT "requestId", "buyerId", quantity FROM orders WHERE "saleId" = $1', [sale.id])).length;

describe("writing orders", () => {
  it("decides a batch in one go: orders, stock, movements and Redis agree", async () => {
    const sale = await openSale(sluice, { initial: 20 });
    const requestIds = [
      ...(await queueMany(sluice, sale, 5)),
      await queueOne(sluice, sale, "anna", { quantity: 3 }),
      await queueOne(sluice, sale, "bert", { quantity: 5 }),
    ];
    expect(kinds(await writeOrders(sluice, sale.id, requestIds))).toEqual(Array(7).fill("ORDERED"));
    const [item] = await stores.sql('SELECT available, locked FROM sale_items WHERE "saleId" = $1', [sale.id]);
    expect(item).toEqual({ available: 7, locked: 13 });
    for (const requestId of requestIds) {
      expect(await inRedis(stores, sale, requestId)).toMatchObject({ stage: "ORDERED", rank: "30" });
    }
    expect(await epochInDatabase(stores, sale)).toBe(1);
    await stores.expectSound(sale);
  });

  it("answers for each id in its place: repeats, those decided before, those never journaled", async () => {
    const sale = await openSale(sluice);
    const [first, second] = (await queueMany(sluice, sale, 2)) as [string, string];
    expect(kinds(await writeOrders(sluice, sale.id, [first]))).toEqual(["ORDERED"]);
    const unknown = randomUUID();
    expect(kinds(await writeOrders(sluice, sale.id, [unknown, second, first, second, unknown]))).toEqual([
      "missing",
      "ORDERED",
      "ORDERED",
      "ORDERED",
      "missing",
    ]);
    expect(await writeOrders(sluice, sale.id, [])).toEqual([]);
    expect(await ordersOf(sale)).toBe(2);
    await stores.expectSound(sale);
  });

  it("writes once what several workers write at once", async () => {
    const sale = await openSale(sluice);
    const requestIds = await queueMany(sluice, sale, 30);
    const backwards = [...requestIds].reverse();
    const results = await Promise.all([
      writeOrders(sluice, sale.id, requestIds),
      writeOrders(other, sale.id, backwards),
      writeOrders(sluice, sale.id, requestIds.slice(10)),
      writeOrders(other, sale.id, backwards.slice(10)),
    ]);
    expect(results.flatMap(kinds).every((kind) => kind === "ORDERED")).toBe(true);
    expect(await ordersOf(sale)).toBe(30);
    await stores.expectSound(sale);
  });

  it("keeps each other's count of the stock where batches of several workers wait for it all the time", async () => {
    const sale = await openSale(sluice, { initial: 250 });
    const requestIds = await queueMany(sluice, sale, 240);
    const batches = Array.from({ length: 24 }, (_, at) => requestIds.slice(at * 10, at * 10 + 10));
    const results = await Promise.all(batches.map((batch, at) => writeOrders(at % 2 ? other : sluice, sale.id, batch)));
    expect(new Set(results.flatMap(kinds))).toEqual(new Set(["ORDERED"]));
    const [item] = await stores.sql('SELECT available, locked FROM sale_items WHERE "saleId" = $1', [sale.id]);
    expect(item).toEqual({ available: 10, locked: 240 });
    await stores.expectSound(sale);
  });

  it("reads the rows of its batch and no others, however many wait in a table that was never analyzed", async () => {
    const crowded = await startStores();
    const quiet = await openProcess(crowded);
    const sale = await openSale(quiet, { initial: 10_000 });
    await crowded.sql("ALTER TABLE requests SET (autovacuum_enabled = false)");
    const waiting = await crowded.sql<{ requestId: string }>(
      `INSERT INTO requests ("saleId", "requestId", "buyerId", "itemId", quantity, epoch, seq, "acceptedAt", "dueAt", "queuedEpoch")
       SELECT $1, gen_random_uuid(), 'b-' || n, $2, 1, 1, n, now(), now() + interval '1 hour', 1
       FROM generate_series(1, 5000) AS n RETURNING "requestId"`,
      [sale.id, sale.itemId],
    );
    const read = async () => {
      const [row] = await crowded.sql<{ read: number }>(
        `SELECT (SELECT seq_tup_read FROM pg_stat_user_tables WHERE relname = 'requests')::int
              + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname = 'requests')::int AS read`,
      );
      return row?.read ?? 0;
    };
    await waitFor(async () => (await read()) === 0, { what: "a table that nobody reads" });
    for (let at = 0; at < 1_000; at += 100) {
      const batch = waiting.slice(at, at + 100).map(({ requestId }) => requestId);
      expect(await writeOrdersThatFit(quiet.db, sale.id, batch)).toMatchObject({ left: 0 });
    }
    // A server process tells its counts when it ends, at the latest: once each row was locked, and once it was decided.
    await quiet.db.$disconnect();
    await waitFor(async () => (await read()) >= 2_000, { what: "the counts to be told", timeoutMs: 30_000 });
    expect(await read()).toBeLessThan(4_000);
  });
});

describe("a request that the database refuses as sold out", () => {
  it("is decided so; those that fit are taken in the order of acceptance; the sale is loaded again", async () => {
    const sale = await openSale(sluice, { initial: 6 });
    const first = await queueOne(sluice, sale, "first", { quantity: 2 });
    const second = await queueOne(sluice, sale, "second", { quantity: 3 });
    const third = await queueOne(sluice, sale, "third");
    await stores.sql('UPDATE sale_items SET initial = 4, available = 4 WHERE "saleId" = $1', [sale.id]);
    await stores.sql(`INSERT INTO stock_movements ("saleId", "itemId", kind, quantity) VALUES ($1, $2, 'ADJUST', -2)`, [
      sale.id,
      sale.itemId,
    ]);
    // By key they would come in another order than they were accepted in.
    const results = await writeOrders(sluice, sale.id, [third, second, first]);
    expect(kinds(results)).toEqual(["ORDERED", "SOLD_OUT", "ORDERED"]);
    await sluice.loads.settled();
    expect(await epochInDatabase(stores, sale)).toBe(2);
    expect(await remaining(stores, sale)).toBe(1);
    expect(await inRedis(stores, sale, second)).toMatchObject({ stage: "SOLD_OUT", reason: "STOCK_GONE" });
    await stores.expectSound(sale);
    await order(sluice, sale, "second");
  });

  it("is found out also where the stock has gone while the writer waited for it", async () => {
    const sale = await openSale(sluice, { initial: 3 });
    const [first, second] = (await queueMany(sluice, sale, 2)) as [string, string];
    const side = await transactionOnTheSide(
      stores,
      'UPDATE sale_items SET initial = 1, available = 1 WHERE "saleId" = $1',
      [sale.id],
    );
    await side.query(`INSERT INTO stock_movements ("saleId", "itemId", kind, quantity) VALUES ($1, $2, 'ADJUST', -2)`, [
      sale.id,
      sale.itemId,
    ]);
    const writing = writeOrders(sluice, sale.id, [second, first]);
    await waitForBlocked(stores);
    await side.commit();
    expect(kinds(await writing)).toEqual(["SOLD_OUT", "ORDERED"]);
    await sluice.loads.settled();
    await stores.expectSound(sale);
  });
});

describe("a second request of a buyer who has a valid order", () => {
  it("fails, leaves the stock alone and its units to those behind it; the sale is loaded again", async () => {
    const sale = await openSale(sluice, { initial: 3 });
    await order(sluice, sale, "anna");
    const again = await journalByHand(stores, sale, "anna", { quantity: 2, seq: 1 });
    const behind = await journalByHand(stores, sale, "bert", { quantity: 2, seq: 2 });
    expect(kinds(await writeOrders(sluice, sale.id, [behind, again]))).toEqual(["ORDERED", "FAILED"]);
    await sluice.loads.settled();
    expect(await remaining(stores, sale)).toBe(0);
    expect(await ask(sluice, sale, "anna", { requestId: again, quantity: 2 })).toMatchObject({
      kind: "decided",
      reservation: { stage: "FAILED", reason: "PROCESSING_FAILED" },
    });
    expect((await ask(sluice, sale, "anna")).kind).toBe("already_reserved");
    await stores.expectSound(sale);
  });

  it("beside it in one batch gets one order: the one that was accepted first, whatever its id", async () => {
    const sale = await openSale(sluice);
    for (let round = 0; round < 6; round += 1) {
      const [later, earlier] = [
        await journalByHand(stores, sale, `anna-${round}`, { seq: 2 }),
        await journalByHand(stores, sale, `anna-${round}`, { seq: 1 }),
      ];
      expect(kinds(await writeOrders(sluice, sale.id, [later, earlier]))).toEqual(["FAILED", "ORDERED"]);
    }
    await sluice.loads.settled();
    await stores.expectSound(sale);
  });

  it("is mended also where a load had counted it before it was refused", async () => {
    const sale = await openSale(sluice, { initial: 9 });
    await order(sluice, sale, "anna");
    const again = await journalByHand(stores, sale, "anna", { quantity: 2 });
    // The writer has read its epoch and waits for the stock; the load comes and goes meanwhile.
    const side = await transactionOnTheSide(stores, 'SELECT 1 FROM sale_items WHERE "saleId" = $1 FOR UPDATE', [
      sale.id,
    ]);
    const writing = writeOrders(sluice, sale.id, [again]);
    await waitForBlocked(stores);
    await loadSale(other, sale.id, { reason: "drift", mendsEpoch: 1 });
    await side.rollback();
    expect(kinds(await writing)).toEqual(["FAILED"]);
    await sluice.loads.settled();
    await stores.expectSound(sale);
  });

  it("is mended also where nobody heard that it was refused", async () => {
    const sale = await openSale(sluice, { initial: 9 });
    await order(sluice, sale, "anna");
    const again = await queueOne(sluice, sale, "carla", { quantity: 2 });
    // What a worker leaves that dies between its COMMIT and what it tells Redis.
    await stores.sql(
      `UPDATE requests SET outcome = 'FAILED', reason = 'PROCESSING_FAILED', "decidedAt" = now()
       WHERE "saleId" = $1 AND "requestId" = $2`,
      [sale.id, again],
    );
    expect(kinds(await writeOrders(sluice, sale.id, [again]))).toEqual(["FAILED"]);
    await sluice.loads.settled();
    await stores.expectSound(sale);
    expect(await remaining(stores, sale)).toBe(8);
  });
});

describe("a decision of somebody else", () => {
  it("made while the writer waits for the row wins, and nobody gets both an order and the units back", async () => {
    const sale = await openSale(sluice, { initial: 9 });
    const [given, kept] = (await queueMany(sluice, sale, 2)) as [string, string];
    const side = await transactionOnTheSide(
      stores,
      `UPDATE requests SET outcome = 'FAILED', reason = 'PROCESSING_FAILED', "decidedAt" = now()
       WHERE "saleId" = $1 AND "requestId" = $2 AND outcome IS NULL`,
      [sale.id, given],
    );
    await side.query(
      `INSERT INTO request_events ("saleId", "requestId", epoch, "fromStage", "toStage", reason, units)
       VALUES ($1, $2, 1, 'QUEUED', 'FAILED', 'PROCESSING_FAILED', 1)`,
      [sale.id, given],
    );
    const writing = writeOrders(sluice, sale.id, [given, kept]);
    await waitForBlocked(stores);
    await side.commit();
    expect(kinds(await writing)).toEqual(["FAILED", "ORDERED"]);
    await relay(sluice);
    await stores.expectSound(sale);
    expect(await remaining(stores, sale)).toBe(8);
  });

  it("races the writer a hundred times: exactly one wins each time", async () => {
    const sale = await openSale(sluice, { initial: 100 });
    const requestIds = await queueMany(sluice, sale, 100);
    const compensating = (async () => {
      for (const requestId of [...requestIds].sort()) await compensate(other, sale, requestId);
    })();
    for (let at = 0; at < 100; at += 10) await writeOrders(sluice, sale.id, requestIds.slice(at, at + 10));
    await compensating;
    await relay(sluice);
    await stores.expectSound(sale);
  });

  it("that was compensated or cancelled gives its units back, though the job comes again before its event", async () => {
    const sale = await openSale(sluice, { initial: 10 });
    const compensated = await queueOne(sluice, sale, "anna", { quantity: 2 });
    const cancelled = await order(sluice, sale, "bert", { quantity: 3 });
    await compensate(sluice, sale, compensated);
    await changeUntold(sluice, sale, cancelled);
    expect(kinds(await writeOrders(sluice, sale.id, [compensated, cancelled]))).toEqual(["FAILED", "ORDERED"]);
    await relay(sluice);
    expect(await remaining(stores, sale)).toBe(10);
    expect(await inRedis(stores, sale, cancelled)).toMatchObject({ stage: "CANCELLED" });
    await stores.expectSound(sale);
    expect(await epochInDatabase(stores, sale)).toBe(1);
  });

  it("stays unheard while Redis is away, and is heard afterwards", async () => {
    const sale = await openSale(sluice, { initial: 9 });
    await order(sluice, sale, "anna");
    const again = await journalByHand(stores, sale, "anna", { quantity: 2 });
    const loaded = await loadSale(sluice, sale.id, { reason: "drift", mendsEpoch: 1 });
    expect(loaded.kind).toBe("loaded");
    stores.redis.freeze();
    expect(kinds(await writeOrders(other, sale.id, [again]))).toEqual(["FAILED"]);
    stores.redis.thaw();
    await waitFor(async () => stores.expectSound(sale).then(() => true), { what: "the sale to be mended" });
  });
});
