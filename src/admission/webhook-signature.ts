/**
 * How a payment provider shows that a webhook is from it and new: `t=<unix seconds>,v1=<hex>`, where v1 is the HMAC-SHA256
 * of `<t>.<the body's bytes>`. It is the scheme of Stripe's webhooks; the time is signed with the body, so that neither can
 * be changed and an old message can't be sent for ever.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import { MINUTE, SECOND } from "../domain/time.js";

/** The header that carries it, as Node names it. */
export const SIGNATURE_HEADER = "sluice-signature";

/** How far a sender's clock may be from ours, both ways. */
const TOLERANCE_MS = 5 * MINUTE;

const TIME = /^\d{1,12}$/;
const DIGEST = /^[0-9a-f]{64}$/i;

/** The header's value for a body sent at `at`. */
export function signWebhook(secret: string, body: string | Uint8Array, at: Date): string {
  const time = String(Math.floor(at.getTime() / SECOND));
  return `t=${time},v1=${digest(secret, time, body).toString("hex")}`;
}

/** What a signature is worth: `stale` is a right one whose time is more than five minutes from ours, `invalid` all else. */
export type WebhookVerdict = "valid" | "stale" | "invalid";

export interface SignedWebhook {
  /** as it came; undefined where there is none */
  readonly header: string | undefined;
  /** the body as it came: one that was parsed and written again is another one */
  readonly body: string | Uint8Array;
  readonly now: Date;
}

/**
 * Checks a signature against each of the secrets. There may be several v1, from a sender who changes his secret and signs
 * with both; one of them must be right. Schemes that aren't known are passed over.
 */
export function verifyWebhook(secrets: readonly string[], { header, body, now }: SignedWebhook): WebhookVerdict {
  const { times, signatures } = parseHeader(header ?? "");
  const [time] = times;
  if (time === undefined || times.length > 1) return "invalid";
  let right = false;
  for (const secret of secrets) {
    const expected = digest(secret, time, body);
    for (const signature of signatures) right = timingSafeEqual(expected, signature) || right;
  }
  if (!right) return "invalid";
  return Math.abs(now.getTime() - Number(time) * SECOND) <= TOLERANCE_MS ? "valid" : "stale";
}

function digest(secret: string, time: string, body: string | Uint8Array): Buffer {
  return createHmac("sha256", secret).update(`${time}.`).update(body).digest();
}

function parseHeader(header: string): { times: string[]; signatures: Buffer[] } {
  const values = (name: string, shape: RegExp) =>
    header
      .split(",")
      .map((part) => part.trim())
      .filter((part) => part.startsWith(`${name}=`) && shape.test(part.slice(name.length + 1)))
      .map((part) => part.slice(name.length + 1));
  return { times: values("t", TIME), signatures: values("v1", DIGEST).map((hex) => Buffer.from(hex, "hex")) };
}
