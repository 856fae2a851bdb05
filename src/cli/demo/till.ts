/** Where what was reserved is looked at, paid and given back: over connections of its own, so that nobody waits behind the crowd. */
import { Agent } from "node:http";
import { urlToHttpOptions } from "node:url";
import { SIGNATURE_HEADER, signWebhook } from "../../admission/webhook-signature.js";
import { jitteredMs, SECOND } from "../../domain/time.js";
import { pause } from "../../lifecycle/pause.js";
import { type GraphQLBody, post, type Reply } from "./post.js";
import type { RunningSluice } from "./running-sluice.js";

/** A reservation as its buyer sees it. */
export interface Held {
  readonly status: string;
  readonly order: { readonly id: string; readonly status: string; readonly totalMinor: number } | null;
}

/** Money that a payment provider has received. */
export interface Report {
  readonly orderId: string;
  readonly paymentRef: string;
  /** in the order's currency's minor unit */
  readonly amountMinor: number;
}

/** How a provider reports a payment. */
export type Way = "mutation" | "webhook";

export interface Till {
  /** the ways that there are: without a secret to sign with there is no webhook */
  readonly ways: readonly Way[];
  /** The buyer's own reservation; null where no answer tells of it. */
  look(token: string, saleId: string, requestId: string): Promise<Held | null>;
  /** Units of a sale that can be reserved now, over its items; null where no answer tells. */
  remaining(saleId: string): Promise<number | null>;
  /** Reports a payment until there is an answer, within reason: its outcome or an error's code; null where none came. */
  report(way: Way, report: Report): Promise<string | null>;
  /** Gives an order back, likewise: the order's status or an error's code. */
  cancel(token: string, orderId: string): Promise<string | null>;
  close(): void;
}

const SOCKETS = 48;
const TRIES = 12;
/** After these it isn't known whether it was done, or it wasn't: the same is sent again. */
const TRY_AGAIN = new Set(["SERVICE_UNAVAILABLE", "OVERLOADED", "RATE_LIMITED", "INTERNAL_SERVER_ERROR"]);

const LOOK = `query Look($saleId: ID!, $requestId: UUID!) {
  reservation(saleId: $saleId, requestId: $requestId) { status order { id status totalMinor } }
}`;
const REMAINING = "query Remaining($saleId: ID!) { sale(id: $saleId) { items { remaining } } }";
const CONFIRM = `mutation Confirm($orderId: ID!, $paymentRef: String!, $amountMinor: Int!) {
  confirmPayment(orderId: $orderId, paymentRef: $paymentRef, amountMinor: $amountMinor) { outcome }
}`;
const CANCEL = "mutation Cancel($orderId: ID!) { cancelOrder(orderId: $orderId) { status } }";

/** Opens nothing yet. @param over ends all waiting */
export async function openTill(sluice: RunningSluice, run: string, over: AbortSignal): Promise<Till> {
  const { apiUrl, webhookSecret } = sluice;
  const agent = new Agent({ keepAlive: true, maxSockets: SOCKETS });
  const at = (path: string) => ({ ...urlToHttpOptions(new URL(`${apiUrl}${path}`)), agent });
  const [graphql, webhook] = [at("/graphql"), at("/webhooks/payments")];
  const provider = await sluice.token("payments", `demo-${run}`);
  const ask = <Data>(token: string | null, query: string, variables: object) =>
    post<GraphQLBody<Data>>(graphql, {
      headers: token === null ? {} : { authorization: `Bearer ${token}` },
      text: JSON.stringify({ query, variables }),
    });

  const byMutation = (report: Report) =>
    untilAnswered(over, async () => {
      const reply = await ask<{ confirmPayment: { outcome: string } }>(provider, CONFIRM, report);
      return wordOf(reply, dataOf(reply)?.confirmPayment.outcome);
    });
  const byWebhook = (secret: string, report: Report) =>
    untilAnswered(over, async () => {
      const text = JSON.stringify(report);
      const headers = { [SIGNATURE_HEADER]: signWebhook(secret, text, new Date()) };
      const reply = await post<GraphQLBody<never> & { outcome?: string }>(webhook, { headers, text });
      return wordOf(reply, reply.kind === "answered" ? reply.body.outcome : undefined);
    });

  return {
    ways: webhookSecret === null ? ["mutation"] : ["mutation", "webhook"],
    look: async (token, saleId, requestId) =>
      dataOf(await ask<{ reservation: Held | null }>(token, LOOK, { saleId, requestId }))?.reservation ?? null,
    async remaining(saleId) {
      const data = dataOf(await ask<{ sale: { items: { remaining: number }[] } | null }>(null, REMAINING, { saleId }));
      return data?.sale?.items.reduce((sum, item) => sum + item.remaining, 0) ?? null;
    },
    report: (way, report) =>
      way === "webhook" && webhookSecret !== null ? byWebhook(webhookSecret, report) : byMutation(report),
    cancel: (token, orderId) =>
      untilAnswered(over, async () => {
        const reply = await ask<{ cancelOrder: { status: string } }>(token, CANCEL, { orderId });
        return wordOf(reply, dataOf(reply)?.cancelOrder.status);
      }),
    close: () => agent.destroy(),
  };
}

function dataOf<Data>(reply: Reply<GraphQLBody<Data>>): Data | null {
  return (reply.kind === "answered" && reply.body.data) || null;
}

/** What was answered, in a word; null where nothing was that can be understood. */
function wordOf(reply: Reply<GraphQLBody<unknown>>, outcome: string | undefined): string | null {
  return outcome ?? (reply.kind === "answered" ? (reply.body.errors?.[0]?.extensions?.code ?? null) : null);
}

/** A provider reports, and a buyer asks, until somebody says what came of it. */
async function untilAnswered(over: AbortSignal, ask: () => Promise<string | null>): Promise<string | null> {
  for (let attempt = 1; attempt <= TRIES && !over.aborted; attempt += 1) {
    const word = await ask();
    if (word !== null && !TRY_AGAIN.has(word)) return word;
    await pause(jitteredMs(0.3 * SECOND, 1.5 * SECOND), over);
  }
  return null;
}
