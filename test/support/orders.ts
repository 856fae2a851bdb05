/** The life of orders through the API: as buyers, a payment provider and operators have it. */
import { randomUUID } from "node:crypto";
import {
  type Answer,
  type Api,
  type ReserveAnswer,
  reserve,
  type TestSale,
  type TestSluice,
  waitUntilDecided,
} from "./sluice.js";
import { query } from "./sql.js";
import { waitFor } from "./wait.js";

/** An order, with the buyer's own token. */
export interface TestOrder {
  /** <saleId>.<requestId> */
  readonly id: string;
  readonly requestId: string;
  readonly token: string;
}

export interface OrderNode {
  readonly id: string;
  readonly status: string;
  readonly buyerId: string | null;
  readonly paymentRef: string | null;
  readonly paidAt: string | null;
}

/** What the tests ask of an order. */
export const ORDER = "id status buyerId paymentRef paidAt";

/** What saleInput() asks for a unit. */
export const PRICE = 2_500;

/** A buyer of that name with an order that waits to be paid. */
export async function placeOrder(
  sluice: TestSluice,
  api: Api,
  sale: TestSale,
  subject: string,
  input: { itemId?: string; quantity?: number } = {},
): Promise<TestOrder> {
  const token = await sluice.token("buyer", subject);
  const requestId = randomUUID();
  const accepted = await reserveInTheEnd(api, token, sale, { ...input, requestId });
  if (!ACCEPTED.includes(accepted.status)) throw new Error(`not accepted, but ${accepted.status}`);
  const { status } = await waitUntilDecided(api, token, sale.id, requestId);
  if (status !== "SUCCESS") throw new Error(`no order came of it, but ${status}`);
  return { id: `${sale.id}.${requestId}`, requestId, token };
}

/** What an accepted request is told: that it was decided meanwhile, too, where an earlier answer was lost. */
const ACCEPTED = ["QUEUED", "DECIDED"];

/** Reserves as a client does: told to come again, it does, with the same request. Every other answer is the answer. */
export async function reserveInTheEnd(
  api: Api,
  token: string,
  sale: TestSale,
  input: { itemId?: string; quantity?: number; requestId?: string } = {},
): Promise<ReserveAnswer["reserve"]> {
  const same = { ...input, requestId: input.requestId ?? randomUUID() };
  return waitFor(
    async () => {
      const { data, errors } = await reserve(api, token, sale, same);
      const [error] = errors ?? [];
      if (error?.extensions.code === "SERVICE_UNAVAILABLE") throw new Error(error.message);
      // Not durable yet: a load in this moment forgets it, and nobody else remembers.
      if (data?.reserve.status === "PENDING") throw new Error(data.reserve.message);
      return data?.reserve ?? { status: `error ${error?.extensions.code}`, ...NO_ANSWER };
    },
    { what: "an answer", timeoutMs: 30_000 },
  );
}

const NO_ANSWER = { message: "", retryAfterMs: null, reservation: null };

interface PaymentData {
  readonly confirmPayment: { readonly outcome: string; readonly order: OrderNode | null };
}

let references = 0;

/** Reports a payment as the provider does: one unit's worth, under a reference of its own, unless told otherwise. */
export async function confirmPayment(
  sluice: TestSluice,
  api: Api,
  orderId: string,
  { paymentRef = `pay_${++references}`, amountMinor = PRICE }: { paymentRef?: string; amountMinor?: number } = {},
): Promise<Answer<PaymentData>> {
  const text = `mutation ($orderId: ID!, $paymentRef: String!, $amountMinor: Int!) {
    confirmPayment(orderId: $orderId, paymentRef: $paymentRef, amountMinor: $amountMinor) { outcome order { ${ORDER} } }
  }`;
  const token = await sluice.token("payments", "the-provider");
  return api.call<PaymentData>(token, text, { orderId, paymentRef, amountMinor });
}

/** Cancels as the buyer of that token. */
export function cancelOrder(api: Api, token: string, orderId: string): Promise<Answer<{ cancelOrder: OrderNode }>> {
  return api.call(token, `mutation ($id: ID!) { cancelOrder(orderId: $id) { ${ORDER} } }`, { id: orderId });
}

/** The code of the one error of an answer, or null where it has none. */
export function codeOf({ errors }: Answer<unknown>): string | null {
  return errors?.map(({ extensions }) => extensions.code).join() ?? null;
}

/** Lets the payment window of an order pass. */
export async function letPass(sluice: TestSluice, { id }: TestOrder): Promise<void> {
  const [saleId, requestId] = id.split(".");
  await query(
    sluice.databaseUrl,
    `UPDATE orders SET "payBy" = now() WHERE "saleId" = $1 AND "requestId" = $2 AND status = 'PENDING_PAYMENT'`,
    [saleId, requestId],
  );
}
