import { insertAudit } from "../db/audit.js";
import type { Tx } from "../db/client.js";
import { findOrderNow } from "../db/order-changes.js";
import {
  findPayment,
  findPaymentByRefund,
  lockRefund,
  markRefundDue,
  markRefunded,
  type Payment,
} from "../db/payments.js";
import { hasMovement } from "../db/stock.js";
import { inTransaction } from "../db/transaction.js";
import { conflict, notFound } from "../domain/errors.js";
import { orderIdOf, parseOrderId } from "../domain/ids.js";
import type { Order, RequestKey } from "../domain/model.js";
import { type ChangeOrdersDeps, changingOrders } from "./change-orders.js";
import { checkReason, checkReference } from "./check-input.js";
import type { SaleCache } from "./sale-cache.js";

export interface RefundCommand {
  readonly orderId: string;
  /** why, for the audit log */
  readonly reason: string;
  /** the operator */
  readonly actor: string;
}

/**
 * Has a paid order refunded: its units are set aside and its payment is due to be given back, until `completeRefund`. The
 * buyer keeps the order so long. A repeat returns the order as it is.
 *
 * @throws SluiceError NOT_FOUND, CONFLICT (not paid), BAD_USER_INPUT; a database error, after which a repeat tells
 */
export async function refundOrder(deps: ChangeOrdersDeps, command: RefundCommand): Promise<Order> {
  checkReason(command.reason);
  const { key, audit } = named(command);
  return changingOrders(deps, key.saleId, async ({ tx, change }) => {
    const [changed] = await change({ change: "refund", requestIds: [key.requestId], condition: { none: true } });
    if (changed) {
      if (changed.order.paymentRef !== null) await markRefundDue(tx, changed.order.paymentRef);
      await insertAudit(tx, { ...audit, action: "refundOrder", reason: command.reason });
      return changed.order;
    }
    const order = await orderNow(tx, key);
    if (order.status === "REFUND_PENDING" || order.status === "REFUNDED") return order;
    throw conflict(`An order that is ${order.status} can't be refunded.`);
  });
}

export interface CompleteRefundDeps extends ChangeOrdersDeps {
  readonly sales: SaleCache;
}

export interface RefundCompletion {
  readonly orderId: string;
  /** what the provider calls the refund */
  readonly refundRef: string;
  /** whether the units are on sale again; else they are written off */
  readonly restock: boolean;
  /** the operator */
  readonly actor: string;
}

/**
 * Notes that the money of an order was given back, and ends the order: its units are on sale again, or are written off, which
 * takes them off the item's `initial`. A repeat returns the refunded order.
 *
 * @throws SluiceError NOT_FOUND; CONFLICT where it isn't waiting for a refund, was refunded in another way, or the reference
 *   stands for another refund; BAD_USER_INPUT; a database error, after which a repeat tells
 */
export async function completeRefund(deps: CompleteRefundDeps, command: RefundCompletion): Promise<Order> {
  const { refundRef, restock } = command;
  checkReference("refundRef", refundRef);
  const { key, audit } = named(command);
  const order = await changingOrders(deps, key.saleId, async ({ tx, change }) => {
    // The payment that paid it: other money for the same order, which could not buy, is given back under another reference.
    const isItsPayment = ({ outcome, saleId, requestId }: Payment) =>
      outcome === "PAID" && saleId === key.saleId && requestId === key.requestId;
    await refuseTaken(tx, refundRef, isItsPayment);
    const [changed] = await change({
      change: restock ? "restock" : "writeOff",
      requestIds: [key.requestId],
      condition: { none: true },
      reason: "REFUNDED",
    });
    if (changed) {
      await markRefunded(tx, changed.order.paymentRef ?? "", refundRef);
      await insertAudit(tx, { ...audit, action: "completeRefund", details: { ...audit.details, refundRef, restock } });
      return changed.order;
    }
    const order = await orderNow(tx, key);
    if (order.status !== "REFUNDED") throw conflict(`An order that is ${order.status} is not waiting for a refund.`);
    const payment = await findPayment(tx, order.paymentRef ?? "");
    const restocked = await hasMovement(tx, key, "REFUND_DONE");
    if (payment?.refundRef !== refundRef || restocked !== restock) {
      throw conflict("This order was refunded before, under another reference or with its units going another way.");
    }
    return order;
  });
  // A write-off takes units off what the sale has put on sale: whoever asks here next sees it.
  if (!restock) await deps.sales.read(key.saleId).catch(() => null);
  return order;
}

export interface PaymentRefund {
  readonly paymentRef: string;
  /** what the provider calls the refund */
  readonly refundRef: string;
  /** the operator */
  readonly actor: string;
}

/**
 * Notes that money which could not buy was given back. A repeat returns the payment.
 *
 * @throws SluiceError NOT_FOUND; CONFLICT where the payment is an order's, which `completeRefund` ends, was given back under
 *   another reference, or the reference stands for another refund; BAD_USER_INPUT; a database error
 */
export async function refundPayment(deps: ChangeOrdersDeps, command: PaymentRefund): Promise<Payment> {
  const { paymentRef, refundRef, actor } = command;
  checkReference("paymentRef", paymentRef);
  checkReference("refundRef", refundRef);
  return inTransaction(deps.orders, async (tx) => {
    await refuseTaken(tx, refundRef, (payment) => payment.paymentRef === paymentRef);
    const before = await findPayment(tx, paymentRef);
    if (!before) throw notFound("There is no such payment.");
    if (before.outcome === "PAID") throw conflict("This payment paid an order: refund that.");
    if (await markRefunded(tx, paymentRef, refundRef)) {
      const details = { orderId: before.orderId, paymentRef, refundRef };
      await insertAudit(tx, { saleId: before.saleId, actor, action: "refundPayment", details });
    }
    const after = (await findPayment(tx, paymentRef)) ?? before;
    if (after.refundRef !== refundRef) throw conflict("This payment was given back before, under another reference.");
    return after;
  });
}

function named({ orderId, actor }: { readonly orderId: string; readonly actor: string }) {
  const key = parseOrderId(orderId);
  if (!key) throw notFound("There is no such order.");
  const { saleId, requestId } = key;
  return { key, audit: { saleId, actor, details: { orderId: orderIdOf(saleId, requestId) } } };
}

async function orderNow(tx: Tx, key: RequestKey): Promise<Order> {
  const now = await findOrderNow(tx, key);
  if (!now) throw notFound("There is no such order.");
  return now.order;
}

/** A reference is for one refund: the provider's mistake, or a slip of the hand, must not settle two. */
async function refuseTaken(tx: Tx, refundRef: string, isThis: (payment: Payment) => boolean): Promise<void> {
  await lockRefund(tx, refundRef);
  const taken = await findPaymentByRefund(tx, refundRef);
  if (taken && !isThis(taken)) throw conflict("This refundRef stands for another refund.");
}
