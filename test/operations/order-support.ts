/** What the tests of an order's life share: orders by the dozen and by the thousand, and what the database says of them. */
import { randomUUID } from "node:crypto";
import { expect } from "vitest";
import { orderIdOf } from "../../src/domain/ids.js";
import { type OrderStatus, STAGES, stageOf } from "../../src/domain/stages.js";
import { loadSale } from "../../src/operations/load.js";
import { writeOrders } from "../../src/operations/write-orders.js";
import type { Resources } from "../../src/resources.js";
import { ask, epochInDatabase, type Stores, type TestSale } from "./support.js";

/** The price of a unit in the sales of these tests, in cents. */
export const PRICE = 2_500;

export interface Buyer {
  readonly buyerId: string;
  readonly quantity: number;
}

/** An unpaid order each, all reserved at once and written in one batch: the requestIds, in the buyers' order. */
export async function orderAll(resources: Resources, sale: TestSale, buyers: readonly Buyer[]): Promise<string[]> {
  const requestIds = buyers.map(() => randomUUID());
  const outcomes = await Promise.all(
    buyers.map(({ buyerId, quantity }, at) =>
      ask(resources, sale, buyerId, { quantity, requestId: requestIds[at] as string }),
    ),
  );
  expect(outcomes.map(({ kind }) => kind)).toEqual(buyers.map(() => "queued"));
  const results = await writeOrders(resources, sale.id, requestIds);
  expect(results.map((result) => result.kind === "decided" && result.decision.outcome)).toEqual(
    buyers.map(() => "ORDERED"),
  );
  return requestIds;
}

/** Thousands of unpaid orders of a unit each in a few statements, as if everybody had come long ago; then the load. */
export async function orderByHand(resources: Resources, stores: Stores, sale: TestSale, count: number): Promise<void> {
  await stores.sql(
    `WITH r AS (
       INSERT INTO requests ("saleId", "requestId", "buyerId", "itemId", quantity, epoch, seq, "acceptedAt", "dueAt",
                             "queuedEpoch", outcome, "decidedAt")
       SELECT s.id, gen_random_uuid(), 'hand-' || n, $2, 1, s.epoch, s.epoch * 1000000 + n, now(), now(), s.epoch,
              'ORDERED', now()
       FROM sales s, generate_series(1, $3::int) n WHERE s.id = $1 RETURNING "requestId", "buyerId"
     ), o AS (
       INSERT INTO orders ("saleId", "requestId", "buyerId", "activeBuyerId", "itemId", quantity, "totalMinor", currency, "payBy")
       SELECT $1, "requestId", "buyerId", "buyerId", $2, 1, ${PRICE}, 'EUR', now() + interval '15 minutes' FROM r
     ), m AS (
       INSERT INTO stock_movements ("saleId", "itemId", "requestId", kind, quantity)
       SELECT $1, $2, "requestId", 'LOCK', 1 FROM r
     )
     UPDATE sale_items SET available = available - $3, locked = locked + $3 WHERE "saleId" = $1 AND id = $2`,
    [sale.id, sale.itemId, count],
  );
  await loadSale(resources, sale.id, { reason: "drift", mendsEpoch: await epochInDatabase(stores, sale) });
}

/** Ends the payment windows of orders, each so many milliseconds from now. */
export async function setPayBy(
  stores: Stores,
  sale: TestSale,
  requestIds: readonly string[],
  fromNowMs: readonly number[],
): Promise<void> {
  await stores.sql(
    `UPDATE orders o SET "payBy" = clock_timestamp() + d.ms * interval '1 millisecond'
     FROM unnest($2::uuid[], $3::int[]) AS d(id, ms) WHERE o."saleId" = $1 AND o."requestId" = d.id`,
    [sale.id, requestIds, fromNowMs],
  );
}

/** Statuses of orders by requestId; of all orders of the sale where none are named. */
export async function statusesOf(
  stores: Stores,
  sale: TestSale,
  requestIds?: readonly string[],
): Promise<Map<string, OrderStatus>> {
  const rows = await stores.sql<{ requestId: string; status: OrderStatus }>(
    `SELECT "requestId", status FROM orders
     WHERE "saleId" = $1 AND ($2::uuid[] IS NULL OR "requestId" = ANY($2::uuid[]))`,
    [sale.id, requestIds ?? null],
  );
  return new Map(rows.map(({ requestId, status }) => [requestId, status]));
}

export interface Stock {
  readonly initial: number;
  readonly available: number;
  readonly locked: number;
  readonly sold: number;
  readonly refundPending: number;
}

/** The stock columns of the sale's item. */
export async function stockOf(stores: Stores, sale: TestSale): Promise<Stock> {
  const [row] = await stores.sql<Stock>(
    `SELECT initial, available, locked, sold, "refundPending" FROM sale_items WHERE "saleId" = $1 AND id = $2`,
    [sale.id, sale.itemId],
  );
  if (!row) throw new Error("there is no such item");
  return row;
}

/** Units that the movements of the sale have moved, by kind. */
export async function movedUnits(stores: Stores, sale: TestSale): Promise<Record<string, number>> {
  const rows = await stores.sql<{ kind: string; units: number }>(
    'SELECT kind, sum(quantity)::int AS units FROM stock_movements WHERE "saleId" = $1 GROUP BY kind',
    [sale.id],
  );
  return Object.fromEntries(rows.map(({ kind, units }) => [kind, units]));
}

/** The log of a sale without what opened it, the oldest line first. */
export function auditsOf(stores: Stores, sale: TestSale) {
  return stores.sql(
    `SELECT action, actor, reason, details FROM audit_entries
     WHERE "saleId" = $1 AND action NOT IN ('createSale', 'openSale') ORDER BY id`,
    [sale.id],
  );
}

/** The stage that Redis must have of an ordered request. */
export const stageAfter = (status: OrderStatus) => {
  const stage = stageOf("ORDERED", status);
  return { stage, rank: String(STAGES[stage].rank) };
};

/** The outside's name of an order. */
export const orderId = (sale: TestSale, requestId: string) => orderIdOf(sale.id, requestId);
