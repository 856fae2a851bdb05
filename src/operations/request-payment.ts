import type { Database } from "../db/client.js";
import { findOrderNow } from "../db/order-changes.js";
import { conflict, notFound, SluiceError, serviceUnavailable } from "../domain/errors.js";
import { orderIdOf, parseOrderId } from "../domain/ids.js";
import { orWhenLate } from "../lifecycle/pause.js";
import type { LogRarely } from "../observability/logger.js";
import type { BegunPayment, PayableOrder, PaymentProvider } from "../payments/provider.js";

export interface RequestPaymentDeps {
  readonly reads: Database;
  /** null where there is none */
  readonly payments: PaymentProvider | null;
  readonly rarely: LogRarely;
  readonly config: { readonly tuning: { readonly deadlines: { readonly paymentMs: number } } };
}

export interface PaymentRequest extends BegunPayment {
  readonly payBy: Date;
}

/**
 * Begins the payment of a buyer's own unpaid order at the payment provider. Nothing of ours changes by it: the order is
 * paid when the provider says so. A provider that takes its time keeps nobody but this buyer waiting: the order was read
 * before, and no connection is held.
 *
 * Safe to repeat. @throws SluiceError NOT_FOUND (also another buyer's), CONFLICT (it can't be paid any more),
 *   SERVICE_UNAVAILABLE (the provider failed, or took longer than `paymentMs`; without retryAfterMs where there is none)
 */
export async function requestPayment(
  deps: RequestPaymentDeps,
  { orderId, buyerId }: { readonly orderId: string; readonly buyerId: string },
): Promise<PaymentRequest> {
  const { payments } = deps;
  if (!payments) throw new SluiceError("SERVICE_UNAVAILABLE", "No payment provider is configured here.");
  const order = await findPayable(deps, orderId, buyerId);
  return { ...(await begin(deps, payments, order)), payBy: order.payBy };
}

async function begin(
  { rarely, config }: RequestPaymentDeps,
  payments: PaymentProvider,
  order: PayableOrder,
): Promise<BegunPayment> {
  const late = new AbortController();
  const giveUp = () => {
    late.abort();
    throw new Error("no answer in time");
  };
  // In a promise, also where a provider throws before it has one.
  const asked = Promise.resolve().then(() => payments.requestPayment(order, late.signal));
  try {
    const { paymentRef, url } = await orWhenLate(asked, config.tuning.deadlines.paymentMs, giveUp);
    return { paymentRef, url };
  } catch (error) {
    // Told to end, a provider may say its last word before our own.
    const inTime = !late.signal.aborted;
    rarely(
      "warn",
      { err: error },
      inTime ? "the payment provider failed" : "the payment provider did not answer in time",
    );
    const what = inTime ? "can't be reached right now" : "did not answer in time";
    throw serviceUnavailable(`The payment provider ${what}. Try again.`, error);
  }
}

async function findPayable({ reads }: RequestPaymentDeps, orderId: string, buyerId: string): Promise<PayableOrder> {
  const key = parseOrderId(orderId);
  const found = key && (await findOrderNow(reads, key));
  if (!found || found.order.buyerId !== buyerId) throw notFound("There is no such order.");
  const { order, late } = found;
  if (order.status !== "PENDING_PAYMENT") throw conflict(`An order that is ${order.status} can't be paid.`);
  if (late) throw conflict("The time to pay this order is over.");
  const { totalMinor: amountMinor, currency, payBy } = order;
  return { orderId: orderIdOf(order.saleId, order.requestId), amountMinor, currency, payBy };
}
