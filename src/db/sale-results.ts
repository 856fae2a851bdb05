/** What a sale came to: its orders, the units that went round twice, and the money. Reads only. */
import type { OrderStatus } from "../domain/stages.js";
import type { Database } from "./client.js";
import type { RecordedOutcome } from "./payments.js";

/** How many of a sale's orders are what, and its units that went round. */
export interface OrderCounts {
  readonly unpaid: number;
  /** of the unpaid, those whose window has passed for so long that somebody should have noticed */
  readonly overdue: number;
  readonly paid: number;
  readonly cancelled: number;
  readonly expired: number;
  /** units that are paid for */
  readonly unitsPaid: number;
  /** units that went back on sale, as the movements have it */
  readonly cameBack: number;
  /** units that were ordered, as the movements have it, however often each of them was */
  readonly everOrdered: number;
}

/** Counts the orders of a sale, in one statement. `overdueMs` is how long after `payBy` an unpaid order counts as overdue. */
export async function countOrders(db: Database, saleId: string, overdueMs: number): Promise<OrderCounts> {
  const rows = await db.$queryRaw<OrderCounts[]>`
    SELECT count(*) FILTER (WHERE status = 'PENDING_PAYMENT')::int AS unpaid,
           count(*) FILTER (WHERE status = 'PENDING_PAYMENT'
                              AND "payBy" <= now() - ${overdueMs} * interval '1 millisecond')::int AS overdue,
           count(*) FILTER (WHERE status = 'PAID')::int AS paid,
           count(*) FILTER (WHERE status = 'CANCELLED')::int AS cancelled,
           count(*) FILTER (WHERE status = 'EXPIRED')::int AS expired,
           coalesce(sum(quantity) FILTER (WHERE status = 'PAID'), 0)::int AS "unitsPaid",
           (SELECT coalesce(sum(quantity), 0)::int FROM stock_movements
             WHERE "saleId" = ${saleId} AND kind IN ('RELEASE', 'REFUND_DONE')) AS "cameBack",
           (SELECT coalesce(sum(quantity), 0)::int FROM stock_movements
             WHERE "saleId" = ${saleId} AND kind = 'LOCK') AS "everOrdered"
    FROM orders WHERE "saleId" = ${saleId}`;
  const [counts] = rows;
  if (!counts) throw new Error("an aggregate without a row");
  return counts;
}

/** A payment as it is on record, with the order that it is for. */
export interface RecordedPayment {
  readonly paymentRef: string;
  readonly orderId: string;
  /** in the currency's minor unit */
  readonly amountMinor: number;
  readonly outcome: RecordedOutcome;
  readonly refundDue: boolean;
  /** null where there is no such order */
  readonly orderStatus: OrderStatus | null;
  /** whether it is this payment that the order was paid by */
  readonly paidTheOrder: boolean;
}

/** All payments that were recorded for a sale's orders. */
export async function readPayments(db: Database, saleId: string): Promise<RecordedPayment[]> {
  return db.$queryRaw<RecordedPayment[]>`
    SELECT p."paymentRef", p."orderId", p."amountMinor", p.outcome::text AS outcome,
           p."refundDueAt" IS NOT NULL AS "refundDue", o.status::text AS "orderStatus",
           coalesce(o."paymentRef" = p."paymentRef", false) AS "paidTheOrder"
    FROM payments p
    LEFT JOIN orders o ON o."saleId" = p."saleId" AND o."requestId" = p."requestId"
    WHERE p."saleId" = ${saleId}
    ORDER BY p."paymentRef"`;
}
