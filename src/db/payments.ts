import type { Page } from "../domain/model.js";
import type { Database, Tx } from "./client.js";
import { pageOf } from "./page.js";

/** What a payment that was reported came to when it was recorded. */
export type RecordedOutcome = "PAID" | "REFUND_DUE" | "AMOUNT_MISMATCH";

export interface Payment {
  /** the provider's name for it, unique everywhere */
  readonly paymentRef: string;
  /** what the reporter called the order, which may be unknown here */
  readonly orderId: string;
  /** null where what it was called can't be one of our orders */
  readonly saleId: string | null;
  readonly requestId: string | null;
  /** in the currency's minor unit */
  readonly amountMinor: number;
  readonly outcome: RecordedOutcome;
  readonly createdAt: Date;
  /** since when it is to be given back; null while it may be kept */
  readonly refundDueAt: Date | null;
  readonly refundRef: string | null;
  readonly refundedAt: Date | null;
}

export type NewPayment = Pick<Payment, "paymentRef" | "orderId" | "saleId" | "requestId" | "amountMinor" | "outcome">;

/** The payment of that reference, or null. */
export function findPayment(db: Database | Tx, paymentRef: string): Promise<Payment | null> {
  return db.payment.findUnique({ where: { paymentRef } });
}

/** The payment of that reference, and how long ago it was recorded by the database's clock, in milliseconds; or null. */
export async function findPaymentWithAge(
  db: Database,
  paymentRef: string,
): Promise<{ readonly payment: Payment; readonly ageMs: number } | null> {
  const payment = await findPayment(db, paymentRef);
  const rows = await db.$queryRaw<{ ageMs: number }[]>`
    SELECT (1000 * extract(epoch FROM clock_timestamp() - "createdAt"))::float8 AS "ageMs"
    FROM payments WHERE "paymentRef" = ${paymentRef}`;
  const [age] = rows;
  return payment && age ? { payment, ageMs: age.ageMs } : null;
}

/** Records a payment; one that could not buy is to be given back from now on. False where its reference is on record already. */
export async function insertPayment(tx: Tx, payment: NewPayment): Promise<boolean> {
  const { paymentRef, orderId, saleId, requestId, amountMinor, outcome } = payment;
  const rows = await tx.$executeRaw`
    INSERT INTO payments ("paymentRef", "orderId", "saleId", "requestId", "amountMinor", outcome, "refundDueAt")
    VALUES (${paymentRef}, ${orderId}, ${saleId}, ${requestId}::uuid, ${amountMinor}, ${outcome}::"PaymentOutcome",
            CASE WHEN ${outcome === "PAID"} THEN NULL ELSE clock_timestamp() END)
    ON CONFLICT ("paymentRef") DO NOTHING`;
  return rows === 1;
}

/** Has the money of an order given back from now on. */
export async function markRefundDue(tx: Tx, paymentRef: string): Promise<void> {
  await tx.$executeRaw`
    UPDATE payments SET "refundDueAt" = clock_timestamp() WHERE "paymentRef" = ${paymentRef} AND "refundDueAt" IS NULL`;
}

/**
 * Notes that money which was due was given back. False where it isn't due, or was given back before. The caller has made
 * sure, under `lockRefund`, that the reference stands for no other payment; the unique key stands behind it.
 */
export async function markRefunded(tx: Tx, paymentRef: string, refundRef: string): Promise<boolean> {
  const rows = await tx.$executeRaw`
    UPDATE payments SET "refundRef" = ${refundRef}, "refundedAt" = clock_timestamp()
    WHERE "paymentRef" = ${paymentRef} AND "refundDueAt" IS NOT NULL AND "refundedAt" IS NULL`;
  return rows === 1;
}

/** Lets one transaction at a time ask whether a refund's reference is taken, and take it. */
export async function lockRefund(tx: Tx, refundRef: string): Promise<void> {
  await tx.$executeRaw`SELECT pg_advisory_xact_lock(hashtextextended('sluice:refund:' || ${refundRef}, 0))`;
}

/** The payment that was given back under this reference, or null. */
export function findPaymentByRefund(db: Database | Tx, refundRef: string): Promise<Payment | null> {
  return db.payment.findUnique({ where: { refundRef } });
}

export interface DueRefundsQuery {
  readonly first: number;
  /** the last one of the page before */
  readonly after: { readonly dueAt: Date; readonly paymentRef: string } | null;
}

/** A page of the money that is to be given back, due the longest first. */
export async function findDueRefunds(db: Database, { first, after }: DueRefundsQuery): Promise<Page<Payment>> {
  const rows = await db.payment.findMany({
    where: {
      refundedAt: null,
      refundDueAt: { not: null },
      ...(after && {
        OR: [{ refundDueAt: { gt: after.dueAt } }, { refundDueAt: after.dueAt, paymentRef: { gt: after.paymentRef } }],
      }),
    },
    orderBy: [{ refundDueAt: "asc" }, { paymentRef: "asc" }],
    take: first + 1,
  });
  return pageOf(rows, first);
}
