/** `POST /webhooks/payments`: what a payment provider reports, signed. Behind it is the same `pay` as behind confirmPayment. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { z } from "zod";
import { SIGNATURE_HEADER, verifyWebhook } from "../admission/webhook-signature.js";
import { badUserInput, type ErrorCode, SluiceError } from "../domain/errors.js";
import { SECOND } from "../domain/time.js";
import { toClientError } from "../graphql/errors.js";
import type { RequestLog } from "../observability/logger.js";
import type { ChangeOrdersDeps } from "../operations/change-orders.js";
import { type PaymentReport, pay } from "../operations/pay.js";
import { readBody } from "./read-body.js";
import { refuseUnread } from "./refuse-unread.js";
import { type Route, refuseMethod } from "./routes.js";
import { sendJson } from "./send-json.js";

export const PAYMENT_WEBHOOK_PATH = "/webhooks/payments";

/** The largest report, in bytes. What we need of one are 600 at the most; providers like to say more. */
export const MAX_WEBHOOK_BYTES = 16 * 1024;

const TOO_LARGE = {
  error: `The report is larger than ${MAX_WEBHOOK_BYTES / 1024} KB.`,
  code: "BAD_USER_INPUT",
} satisfies { error: string; code: ErrorCode };

const STATUS: Partial<Record<ErrorCode, number>> = {
  BAD_USER_INPUT: 400,
  UNAUTHENTICATED: 401,
  CONFLICT: 409,
  SERVICE_UNAVAILABLE: 503,
};

/** Whatever else a provider says in it is its own affair. */
const report = z.object({ orderId: z.string(), paymentRef: z.string(), amountMinor: z.number() });

/**
 * 200 `{ outcome, orderId }` whatever the money came to, since it is on record then and there is nothing to repeat. Else
 * `{ error, code }`: 400, 401, 409, 413 are for good, 503 (with `retry-after`) and 500 may be sent again as they are.
 *
 * @param secrets any of them may have signed: two while a secret is being changed
 */
export function paymentWebhookRoute(deps: ChangeOrdersDeps, secrets: readonly string[]): Route {
  return async (req, res, { log }) => {
    if (req.method !== "POST") return refuseMethod(res, "POST");
    const body = await readBody(req, MAX_WEBHOOK_BYTES);
    if (body.kind === "gone") return;
    if (body.kind === "tooLarge") return refuseUnread(req, res, TOO_LARGE);
    try {
      checkSignature(deps, secrets, req, body.bytes);
      const received = readReport(body.bytes);
      const { outcome } = await pay(deps, received);
      sendJson(res, 200, { outcome, orderId: received.orderId });
    } catch (error) {
      if (error instanceof SluiceError && error.code === "BAD_USER_INPUT") {
        // Rightly signed, so it may well tell of money, which can't be put on record: somebody has to look into it.
        deps.metrics.payments.inc({ outcome: "unreadable" });
        log.error({ why: error.message }, "a signed payment report can't be recorded");
      }
      sendError(res, error, log);
    }
  };
}

/** @throws SluiceError UNAUTHENTICATED, in the same words whatever was wrong: who guesses learns nothing */
function checkSignature(
  deps: Pick<ChangeOrdersDeps, "rarely">,
  secrets: readonly string[],
  { headers }: IncomingMessage,
  body: Buffer,
): void {
  const given = headers[SIGNATURE_HEADER];
  const header = Array.isArray(given) ? given.join() : given;
  const verdict = verifyWebhook(secrets, { header, body, now: new Date() });
  if (verdict === "valid") return;
  const stale = verdict === "stale";
  deps.rarely("warn", { verdict, signed: header !== undefined }, "a payment webhook was refused for its signature");
  // A right signature is nobody's guess: who made it may hear that his clock is wrong.
  throw new SluiceError(
    "UNAUTHENTICATED",
    stale ? "The signature is too old or too new." : "The signature is not valid.",
  );
}

/** @throws SluiceError BAD_USER_INPUT */
function readReport(body: Buffer): PaymentReport {
  const parsed = report.safeParse(parseJson(body.toString("utf8")));
  if (parsed.success) return parsed.data;
  throw badUserInput("The body must be JSON: { orderId: string, paymentRef: string, amountMinor: number }.");
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function sendError(res: ServerResponse, error: unknown, log: RequestLog): void {
  const { message, extensions } = toClientError(error, log);
  const { code, retryAfterMs } = extensions as { code: ErrorCode; retryAfterMs?: number };
  if (retryAfterMs !== undefined) res.setHeader("retry-after", Math.ceil(retryAfterMs / SECOND));
  sendJson(res, STATUS[code] ?? 500, { error: message, code });
}
