import type { Order, RequestKey } from "../domain/model.js";
import { isValid, ORDER_TRANSITIONS, type OrderChange } from "../domain/order-transitions.js";
import type { ReservationReason } from "../domain/stages.js";
import type { Database, Tx } from "./client.js";
import { Prisma } from "./generated/client.js";
import type { PendingEvent } from "./request-events.js";

/** An order that was changed, and the event that tells of it. */
export interface ChangedOrder {
  readonly order: Order;
  readonly event: PendingEvent;
}

/** What else must be true of an order, at the moment of its change, for it to be changed. */
export type ChangeCondition =
  /** the window is open by the database's clock, and this is the order's total */
  | { readonly payable: { readonly amountMinor: number } }
  /** the window has passed by the database's clock */
  | { readonly due: true }
  /** it is this buyer's */
  | { readonly buyerId: string }
  | { readonly none: true };

export interface OrderChangeInput {
  readonly change: OrderChange;
  readonly requestIds: readonly string[];
  readonly condition: ChangeCondition;
  /** read under the fence, which the transaction holds */
  readonly epoch: number;
  /** why it ended, where it ends */
  readonly reason?: ReservationReason;
  /** what paid it, where it is paid */
  readonly paymentRef?: string;
}

/**
 * Changes those of a sale's orders that stand where the change starts and meet its condition; the answer has them and no
 * others. One statement: the conditional update decides, and stock, movements and request events follow from its rows, so
 * that two changes which meet on an order have one winner and the loser has done nothing.
 *
 * Locks orders, then items by key. The transaction holds the fence shared.
 */
export async function changeOrders(tx: Tx, saleId: string, input: OrderChangeInput): Promise<ChangedOrder[]> {
  if (input.requestIds.length === 0) return [];
  const { from, to, fromStage, toStage, movement, stock } = ORDER_TRANSITIONS[input.change];
  const { epoch, reason = null, paymentRef = null } = input;
  const rows = await tx.$queryRaw<(Order & { eventId: string; units: number })[]>`
    WITH changed AS (
      UPDATE orders SET
        status = ${to}::"OrderStatus", "updatedAt" = clock_timestamp(),
        "activeBuyerId" = CASE WHEN ${isValid(to)} THEN "activeBuyerId" END,
        reason = ${reason}::"ReservationReason",
        "paymentRef" = coalesce(${paymentRef}, "paymentRef"),
        "paidAt" = CASE WHEN ${paymentRef}::text IS NULL THEN "paidAt" ELSE clock_timestamp() END
      WHERE "saleId" = ${saleId} AND "requestId" = ANY(${input.requestIds}::uuid[])
        AND status = ${from}::"OrderStatus" AND ${asSql(input.condition)}
      RETURNING *
    ), totals AS (
      SELECT "itemId", sum(quantity)::int AS units FROM changed GROUP BY "itemId"
    ), items AS (
      SELECT i.id, t.units FROM sale_items i JOIN totals t ON t."itemId" = i.id
      WHERE i."saleId" = ${saleId} ORDER BY i.id FOR UPDATE OF i
    ), stock AS (
      UPDATE sale_items i SET
        initial = initial + ${stock.initial} * units, available = available + ${stock.available} * units,
        locked = locked + ${stock.locked} * units, sold = sold + ${stock.sold} * units,
        "refundPending" = "refundPending" + ${stock.refundPending} * units
      FROM items WHERE i."saleId" = ${saleId} AND i.id = items.id
    ), movements AS (
      INSERT INTO stock_movements ("saleId", "itemId", "requestId", kind, quantity)
      SELECT "saleId", "itemId", "requestId", ${movement}::"MovementKind", quantity FROM changed
    ), events AS (
      INSERT INTO request_events ("saleId", "requestId", epoch, "fromStage", "toStage", reason, units)
      SELECT "saleId", "requestId", ${epoch}, ${fromStage}, ${toStage}, ${reason}::"ReservationReason",
             ${stock.available} * quantity
      FROM changed
      RETURNING id, "requestId", units
    )
    SELECT c."saleId", c."requestId", c."buyerId", c."itemId", c.quantity, c."totalMinor", c.currency,
           c.status::text AS status, c."createdAt", c."updatedAt", c."payBy", c."paidAt", c."paymentRef",
           e.id::text AS "eventId", e.units
    FROM changed c JOIN events e ON e."requestId" = c."requestId"`;
  return rows.map(({ eventId, units, ...order }) => ({
    order,
    event: { id: eventId, requestId: order.requestId, epoch, toStage, reason, units },
  }));
}

/** Sales with unpaid orders whose window has passed by the database's clock. */
export async function findSalesWithDueOrders(db: Database): Promise<string[]> {
  const rows = await db.$queryRaw<{ saleId: string }[]>`
    SELECT DISTINCT "saleId" FROM orders WHERE status = 'PENDING_PAYMENT' AND "payBy" <= now()`;
  return rows.map((row) => row.saleId);
}

/**
 * Locks some of a sale's unpaid orders whose window has passed, those due first. What another transaction holds is left to
 * it: it is being paid, cancelled, or expired by another worker.
 */
export async function lockDueOrders(tx: Tx, saleId: string, limit: number): Promise<string[]> {
  const rows = await tx.$queryRaw<{ requestId: string }[]>`
    SELECT "requestId" FROM orders
    WHERE status = 'PENDING_PAYMENT' AND "payBy" <= now() AND "saleId" = ${saleId}
    ORDER BY "payBy" LIMIT ${limit}
    FOR UPDATE SKIP LOCKED`;
  return rows.map((row) => row.requestId);
}

/** An order as it is now, and whether its window has passed; null where there is none. */
export async function findOrderNow(
  db: Database | Tx,
  { saleId, requestId }: RequestKey,
): Promise<{ readonly order: Order; readonly late: boolean } | null> {
  const rows = await db.$queryRaw<(Order & { late: boolean })[]>`
    SELECT "saleId", "requestId", "buyerId", "itemId", quantity, "totalMinor", currency, status::text AS status,
           "createdAt", "updatedAt", "payBy", "paidAt", "paymentRef", "payBy" <= clock_timestamp() AS late
    FROM orders WHERE "saleId" = ${saleId} AND "requestId" = ${requestId}::uuid`;
  const [row] = rows;
  if (!row) return null;
  const { late, ...order } = row;
  return { order, late };
}

function asSql(condition: ChangeCondition): Prisma.Sql {
  if ("payable" in condition) {
    return Prisma.sql`"payBy" > clock_timestamp() AND "totalMinor" = ${condition.payable.amountMinor}`;
  }
  if ("due" in condition) return Prisma.sql`"payBy" <= now()`;
  if ("buyerId" in condition) return Prisma.sql`"buyerId" = ${condition.buyerId}`;
  return Prisma.sql`true`;
}
