/** What is to be paid. */
export interface PayableOrder {
  readonly orderId: string;
  /** in the currency's minor unit */
  readonly amountMinor: number;
  /** ISO 4217 */
  readonly currency: string;
  /** when the order expires: what is paid later can only be given back */
  readonly payBy: Date;
}

/** A payment that was begun at the provider. */
export interface BegunPayment {
  /** the provider's name for it, 1 to 255 visible ASCII characters: by this it will be reported */
  readonly paymentRef: string;
  /** where the buyer pays */
  readonly url: string;
}

/** Whoever takes the buyers' money. What was paid comes back by `POST /webhooks/payments`, or by confirmPayment. */
export interface PaymentProvider {
  /**
   * Begins the payment of an order. Buyers ask twice: a provider that knows idempotency keys is given the orderId as one, so
   * that it is the same payment again, and nobody pays twice.
   *
   * Never called inside a transaction, and no connection is held while it takes its time. Nobody waits after `signal` is
   * aborted: end what is under way. Whatever it rejects with, the buyer hears that he may ask again.
   */
  requestPayment(order: PayableOrder, signal: AbortSignal): Promise<BegunPayment>;
}
