import { randomUUID } from "node:crypto";
import { SIGNATURE_HEADER, signWebhook } from "../../src/admission/webhook-signature.js";
import { PRICE, placeOrder } from "./orders.js";
import type { Api, TestSale, TestSluice } from "./sluice.js";

export const WEBHOOK_SECRET = "a webhook's secret of the tests";

/** What was answered, its body parsed. */
export interface HttpAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Record<string, unknown>;
}

/** Buys one unit as this buyer: resolves with the order's id when it waits to be paid. */
export async function buyOne(sluice: TestSluice, api: Api, sale: TestSale, buyerId: string): Promise<string> {
  return (await placeOrder(sluice, api, sale, buyerId)).id;
}

/** A payment as a provider reports it, of the right amount and with a reference of its own. */
export function reportOf(orderId: string, more: Record<string, unknown> = {}): Record<string, unknown> {
  return { orderId, paymentRef: `pay_${randomUUID()}`, amountMinor: PRICE, ...more };
}

/** Sends these bytes to the webhook, signed now unless `signature` says otherwise; without one where that is null. */
export async function sendWebhook(
  { url }: Pick<Api, "url">,
  body: string,
  signature: string | null = signWebhook(WEBHOOK_SECRET, body, new Date()),
): Promise<HttpAnswer> {
  const headers: Record<string, string> = signature === null ? {} : { [SIGNATURE_HEADER]: signature };
  return answered(await fetch(`${url}/webhooks/payments`, { method: "POST", headers, body }));
}

export async function answered(response: Response): Promise<HttpAnswer> {
  const { status, headers } = response;
  return { status, headers, body: (await response.json()) as Record<string, unknown> };
}
