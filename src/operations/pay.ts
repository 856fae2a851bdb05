import { isDatabaseUnavailable } from "../db/errors.js";
import { findOrderNow } from "../db/order-changes.js";
import { findPayment, findPaymentWithAge, insertPayment, type Payment } from "../db/payments.js";
import { badUserInput, conflict } from "../domain/errors.js";
import { orderIdOf, parseOrderId } from "../domain/ids.js";
import type { Order, RequestKey } from "../domain/model.js";
import { type ChangeOrdersDeps, changingOrders, type OrderTransaction } from "./change-orders.js";
import { checkReference } from "./check-input.js";

/** Money that was received, as a payment provider reports it. */
export interface PaymentReport {
  readonly orderId: string;
  /** the provider's name for the payment, the same whenever it reports it */
  readonly paymentRef: string;
  /** in the order's currency's minor unit */
  readonly amountMinor: number;
}

export const PAYMENT_OUTCOMES = ["PAID", "ALREADY_PAID", "REFUND_DUE", "AMOUNT_MISMATCH"] as const;

export interface PaymentAnswer {
  readonly outcome: (typeof PAYMENT_OUTCOMES)[number];
  /** null for an unknown order */
  readonly order: Order | null;
}

const ORDER_ID = /^[\x21-\x7e]{1,128}$/;
const AMOUNT_AT_MOST = 2_147_483_647;

/**
 * Records money that was received, and pays the order with it if that can still be: unpaid, in its window by the database's
 * clock, and of this amount. Whatever it comes to, the money is on record, and where it could not buy it is due to be given
 * back.
 *
 * Safe to repeat: a reference is recorded once, and a repeat gets its outcome. @throws SluiceError BAD_USER_INPUT; CONFLICT
 *   where the reference stands for another order or amount; a database error, after which nothing or all of it was done
 */
export async function pay(deps: ChangeOrdersDeps, report: PaymentReport): Promise<PaymentAnswer> {
  checkReference("paymentRef", report.paymentRef);
  if (!ORDER_ID.test(report.orderId)) throw badUserInput("orderId must have 1 to 128 visible ASCII characters");
  if (!Number.isInteger(report.amountMinor) || report.amountMinor < 0 || report.amountMinor > AMOUNT_AT_MOST) {
    throw badUserInput("amountMinor must be a whole number, 0 or more");
  }
  const key = parseOrderId(report.orderId);
  // As we write it, whichever case its UUID came in: a repeat must find it.
  const named = key ? { ...report, orderId: orderIdOf(key.saleId, key.requestId) } : report;
  const { payment, isNew } = await recordSurely(deps, key, named);
  const order = key && (await findOrderNow(deps.orders, key));
  const outcome = payment.outcome === "PAID" && !isNew ? ("ALREADY_PAID" as const) : payment.outcome;
  deps.metrics.payments.inc({ outcome: outcome.toLowerCase() });
  if (isNew && outcome !== "PAID") {
    deps.log.warn({ orderId: named.orderId, outcome }, "money was received that could not buy: it is to be given back");
  }
  return { outcome, order: order?.order ?? null };
}

/** Another transaction has recorded the reference while this one was paying: nothing was paid, and its outcome stands. */
class ReferenceTaken extends Error {}

interface Recorded {
  readonly payment: Pick<Payment, "outcome">;
  /** whether it was recorded now */
  readonly isNew: boolean;
}

/** Records it, or finds out that it was recorded where the reply to COMMIT may be what was lost. */
async function recordSurely(deps: ChangeOrdersDeps, key: RequestKey | null, report: PaymentReport): Promise<Recorded> {
  const started = performance.now();
  try {
    return await record(deps, key, report).catch((error: unknown) => {
      if (error instanceof ReferenceTaken) return record(deps, key, report);
      throw error;
    });
  } catch (error) {
    if (!isDatabaseUnavailable(error)) throw error;
    const found = await findPaymentWithAge(deps.orders, report.paymentRef).catch(() => null);
    if (!found) throw error;
    // Older than this call, it was recorded by another one, and this is a repeat.
    return { payment: sameAs(found.payment, report), isNew: found.ageMs <= performance.now() - started };
  }
}

async function record(deps: ChangeOrdersDeps, key: RequestKey | null, report: PaymentReport): Promise<Recorded> {
  return changingOrders(deps, key?.saleId ?? "", async (transaction) => {
    const { tx } = transaction;
    const before = await findPayment(tx, report.paymentRef);
    if (before) return { payment: sameAs(before, report), isNew: false };
    const outcome = await tryToPay(transaction, key, report);
    const payment = { ...report, saleId: key?.saleId ?? null, requestId: key?.requestId ?? null, outcome };
    if (await insertPayment(tx, payment)) return { payment, isNew: true };
    if (outcome === "PAID") throw new ReferenceTaken();
    const taken = await findPayment(tx, report.paymentRef);
    if (!taken) throw new ReferenceTaken();
    return { payment: sameAs(taken, report), isNew: false };
  });
}

async function tryToPay(
  transaction: OrderTransaction,
  key: RequestKey | null,
  report: PaymentReport,
): Promise<Payment["outcome"]> {
  if (!key) return "REFUND_DUE";
  const { tx, change } = transaction;
  const { paymentRef, amountMinor } = report;
  const changed = await change({
    change: "pay",
    requestIds: [key.requestId],
    condition: { payable: { amountMinor } },
    paymentRef,
  });
  if (changed.length > 0) return "PAID";
  const now = await findOrderNow(tx, key);
  if (now?.order.status !== "PENDING_PAYMENT" || now.late) return "REFUND_DUE";
  // The right amount for an order that can be paid: it was written since it was looked for.
  if (now.order.totalMinor === report.amountMinor) return tryToPay(transaction, key, report);
  return "AMOUNT_MISMATCH";
}

/** The payment, if it is the one that is reported. @throws SluiceError CONFLICT */
function sameAs(payment: Payment, report: PaymentReport): Payment {
  if (payment.orderId === report.orderId && payment.amountMinor === report.amountMinor) return payment;
  throw conflict("This paymentRef was used before, for another order or amount.");
}
