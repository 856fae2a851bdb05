/** The simulated payment provider's side of the demo: a page with a button, and the webhook that it sends. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { z } from "zod";
import { SIGNATURE_HEADER, signWebhook } from "../admission/webhook-signature.js";
import { SECOND } from "../domain/time.js";
import type { PaymentReport } from "../operations/pay.js";
import { SIMULATOR_PATH } from "../payments/simulator.js";
import { PAYMENT_WEBHOOK_PATH } from "./payment-webhook.js";
import { type Routes, refuseMethod } from "./routes.js";
import { sendJson } from "./send-json.js";

const WEBHOOK_DEADLINE_MS = 10 * SECOND;

/** What the address of a payment says. */
const query = z.object({
  orderId: z.string().min(1),
  paymentRef: z.string().min(1),
  amountMinor: z.string().regex(/^\d+$/).transform(Number),
  currency: z.string().regex(/^[A-Z]{3}$/),
});

interface Answer {
  readonly status: number;
  readonly body: object;
}

/**
 * `/demo/pay?orderId=…&paymentRef=…&amountMinor=…&currency=…`: GET is the page, POST pays. That sends the signed webhook to this very
 * API over HTTP, as a provider would, and answers what came back: to a browser's form as a page, else as it is.
 *
 * @param secrets the first one signs
 */
export function demoPaymentRoutes([secret = ""]: readonly string[]): Routes {
  return {
    [SIMULATOR_PATH]: async (req, res) => {
      if (!["GET", "HEAD", "POST"].includes(req.method ?? "")) return refuseMethod(res, "GET, HEAD, POST");
      const payment = query.safeParse(Object.fromEntries(new URL(req.url ?? "", "http://localhost").searchParams));
      if (!payment.success) return sendJson(res, 400, { error: "This is no payment." });
      if (req.method !== "POST") return sendHtml(res, 200, payPage(payment.data));
      const { orderId, paymentRef, amountMinor } = payment.data;
      const { status, body } = await sendWebhook(req, secret, { orderId, paymentRef, amountMinor });
      if (req.headers.accept?.includes("text/html")) sendHtml(res, status, paidPage(body));
      else sendJson(res, status, body);
    },
  };
}

async function sendWebhook(req: IncomingMessage, secret: string, payment: PaymentReport): Promise<Answer> {
  const body = JSON.stringify(payment);
  try {
    const response = await fetch(`${ownUrl(req)}${PAYMENT_WEBHOOK_PATH}`, {
      method: "POST",
      headers: { "content-type": "application/json", [SIGNATURE_HEADER]: signWebhook(secret, body, new Date()) },
      body,
      signal: AbortSignal.timeout(WEBHOOK_DEADLINE_MS),
    });
    return { status: response.status, body: (await response.json()) as object };
  } catch {
    return { status: 503, body: { error: "The webhook was not answered. Pay again: it is the same payment." } };
  }
}

/** Where this API listens, as the connection says and not as the client does. */
function ownUrl({ socket }: IncomingMessage): string {
  const { localAddress = "127.0.0.1", localPort } = socket;
  return `http://${localAddress.includes(":") ? `[${localAddress}]` : localAddress}:${localPort}`;
}

function payPage({ orderId, amountMinor, currency }: z.infer<typeof query>): string {
  const format = new Intl.NumberFormat("en", { style: "currency", currency });
  // As many digits as the currency has: 19900 EUR is €199.00, 19900 JPY is ¥19,900.
  const amount = format.format(amountMinor / 10 ** (format.resolvedOptions().maximumFractionDigits ?? 2));
  return page(
    `<h1>Pay</h1><p>Order ${escapeHtml(orderId)}</p><p>${escapeHtml(amount)}: no money moves here.</p>` +
      '<form method="post"><button>Pay</button></form>',
  );
}

function paidPage(answer: object): string {
  const { outcome, error } = answer as { outcome?: string; error?: string };
  const sentence = outcome?.endsWith("PAID")
    ? "Paid. Thank you."
    : (error ?? "It could not buy: it is to be given back.");
  return page(`<h1>${escapeHtml(sentence)}</h1><p>${escapeHtml(outcome ?? "")}</p><p><a href="/">To the shop</a></p>`);
}

function page(content: string): string {
  return (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Simulated payment</title>' +
    '<meta name="viewport" content="width=device-width, initial-scale=1"></head>' +
    `<body><main>${content}</main></body></html>`
  );
}

function sendHtml(res: ServerResponse, status: number, html: string): void {
  res.writeHead(status, {
    "content-type": "text/html; charset=utf-8",
    "content-length": Buffer.byteLength(html),
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
  });
  res.end(html);
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
