import type { OrderStatus, ReservationReason } from "../domain/stages.js";
import { idArray, numberArray, textArray } from "./array-text.js";
import type { Statements, Tx } from "./client.js";

/** An undecided request, locked by the transaction that reads it. */
export interface OpenRequest {
  readonly requestId: string;
  readonly buyerId: string;
  readonly itemId: string;
  readonly quantity: number;
  readonly seq: number;
  /** seconds since its acceptance, which Redis's clock told */
  readonly ageSeconds: number;
}

/** What a request has come to. */
export interface Decision {
  readonly requestId: string;
  readonly outcome: "ORDERED" | "SOLD_OUT" | "FAILED";
  readonly reason: ReservationReason | null;
}

/** A decided request as the database tells it now. */
export interface DecidedRequest {
  readonly requestId: string;
  readonly outcome: "ORDERED" | "SOLD_OUT" | "FAILED";
  readonly reason: ReservationReason | null;
  readonly orderStatus: OrderStatus | null;
  /** whether events of it tell, or will tell, what became of its units */
  readonly hasEvents: boolean;
  /** the stage before the oldest event of this epoch that was not applied, or null where there is none */
  readonly stageBeforeEvent: string | null;
}

/** Locks those of the requests that are undecided, by key. Whoever holds them decides; the others wait, then find none. */
export async function lockOpenRequests(tx: Tx, saleId: string, requestIds: readonly string[]): Promise<OpenRequest[]> {
  return tx.$queryRaw<OpenRequest[]>`
    SELECT "requestId", "buyerId", "itemId", quantity, seq::float8 AS seq,
           greatest(0, extract(epoch FROM now() - "acceptedAt"))::float8 AS "ageSeconds"
    FROM requests
    WHERE "saleId" = ${saleId} AND "requestId" = ANY(${idArray(requestIds)}::uuid[]) AND outcome IS NULL
    ORDER BY "requestId"
    FOR UPDATE`;
}

/** Locks the stock rows of items, by key, and tells how many units each has: itemId → available. */
export async function lockStock(tx: Tx, saleId: string, itemIds: readonly string[]): Promise<Map<string, number>> {
  const rows = await tx.$queryRaw<{ id: string; available: number }[]>`
    SELECT id, available FROM sale_items
    WHERE "saleId" = ${saleId} AND id = ANY(${textArray(itemIds)}::text[])
    ORDER BY id
    FOR UPDATE`;
  return new Map(rows.map((row) => [row.id, row.available]));
}

/**
 * Writes an order for each of the requests, at the item's price. One that the buyer's other valid order stands against
 * is left out instead of failing: a violation caught inside a transaction would have ended it. Answers with the ids of
 * those that were written.
 */
export async function insertOrders(
  tx: Tx,
  saleId: string,
  requests: readonly OpenRequest[],
): Promise<ReadonlySet<string>> {
  const rows = await tx.$queryRaw<{ requestId: string }[]>`
    INSERT INTO orders ("saleId", "requestId", "buyerId", "activeBuyerId", "itemId", quantity, "totalMinor", currency,
                        status, "payBy")
    SELECT ${saleId}, r.id, r.buyer, r.buyer, i.id, r.quantity, r.quantity * i."priceMinor", i.currency,
           'PENDING_PAYMENT', now() + s."paymentWindowSeconds" * interval '1 second'
    FROM unnest(
      ${idArray(requests.map((row) => row.requestId))}::uuid[], ${textArray(requests.map((row) => row.buyerId))}::text[],
      ${textArray(requests.map((row) => row.itemId))}::text[], ${numberArray(requests.map((row) => row.quantity))}::int[]
    ) WITH ORDINALITY AS r(id, buyer, item, quantity, position)
    JOIN sale_items i ON i."saleId" = ${saleId} AND i.id = r.item
    JOIN sales s ON s.id = ${saleId}
    ORDER BY r.position
    ON CONFLICT DO NOTHING
    RETURNING "requestId"`;
  return new Set(rows.map((row) => row.requestId));
}

/** Moves units from available to locked. The caller holds the rows and has counted; the CHECK stands behind it. */
export async function lockUnits(tx: Tx, saleId: string, unitsByItem: ReadonlyMap<string, number>): Promise<void> {
  await tx.$executeRaw`
    UPDATE sale_items i SET available = available - u.units, locked = locked + u.units
    FROM unnest(${textArray([...unitsByItem.keys()])}::text[], ${numberArray([...unitsByItem.values()])}::int[]) AS u(item, units)
    WHERE i."saleId" = ${saleId} AND i.id = u.item`;
}

/** Decides requests that are undecided, and answers with how many it decided. */
export async function decideRequests(tx: Tx, saleId: string, decisions: readonly Decision[]): Promise<number> {
  return tx.$executeRaw`
    UPDATE requests r SET outcome = d.outcome::"RequestOutcome", reason = d.reason::"ReservationReason", "decidedAt" = now()
    FROM unnest(
      ${decisions.map((row) => row.requestId)}::uuid[], ${decisions.map((row) => row.outcome)}::text[],
      ${decisions.map((row) => row.reason)}::text[]
    ) AS d(id, outcome, reason)
    WHERE r."saleId" = ${saleId} AND r."requestId" = d.id AND r.outcome IS NULL`;
}

/** Notes for each new order that its units went from available to locked. */
export async function insertLockMovements(tx: Tx, saleId: string, requests: readonly OpenRequest[]): Promise<void> {
  await tx.$executeRaw`
    INSERT INTO stock_movements ("saleId", "itemId", "requestId", kind, quantity)
    SELECT ${saleId}, m.item, m.request, 'LOCK', m.quantity
    FROM unnest(
      ${textArray(requests.map((row) => row.itemId))}::text[], ${idArray(requests.map((row) => row.requestId))}::uuid[],
      ${numberArray(requests.map((row) => row.quantity))}::int[]
    ) AS m(item, request, quantity)`;
}

/** What requests of a sale have been decided to; undecided and absent ones are left out. */
export async function findDecided(
  tx: Statements,
  saleId: string,
  requestIds: readonly string[],
): Promise<Map<string, DecidedRequest>> {
  const rows = await tx.$queryRaw<DecidedRequest[]>`
    SELECT r."requestId", r.outcome::text AS outcome, coalesce(o.reason, r.reason)::text AS reason,
           o.status::text AS "orderStatus",
           e."requestId" IS NOT NULL AS "hasEvents", e."stageBeforeEvent"
    FROM requests r
    JOIN sales s ON s.id = r."saleId"
    LEFT JOIN orders o ON o."saleId" = r."saleId" AND o."requestId" = r."requestId"
    LEFT JOIN LATERAL (
      SELECT "requestId",
             (array_agg("fromStage" ORDER BY id) FILTER (WHERE "appliedAt" IS NULL AND epoch >= s.epoch))[1]
               AS "stageBeforeEvent"
      FROM request_events WHERE "saleId" = r."saleId" AND "requestId" = r."requestId"
      GROUP BY "requestId"
    ) e ON true
    WHERE r."saleId" = ${saleId} AND r."requestId" = ANY(${idArray(requestIds)}::uuid[]) AND r.outcome IS NOT NULL`;
  return new Map(rows.map((row) => [row.requestId, row]));
}
