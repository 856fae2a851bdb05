import { createHmac } from "node:crypto";

/** What tokens are signed with (HS256), and for whom. */
export interface TokenAuth {
  readonly secret: string;
  readonly issuer: string;
  readonly audience: string;
}

/** A buyer's token for a day, as `npm run token` signs it, but at once: 20,000 of them in a fifth of a second. */
export function signBuyerToken({ secret, issuer, audience }: TokenAuth, subject: string): string {
  const now = Math.floor(Date.now() / 1_000);
  const claims = { role: "buyer", sub: subject, iss: issuer, aud: audience, iat: now, exp: now + 24 * 60 * 60 };
  const text = [{ alg: "HS256", typ: "JWT" }, claims].map((part) => base64url(JSON.stringify(part))).join(".");
  return `${text}.${createHmac("sha256", secret).update(text).digest("base64url")}`;
}

function base64url(text: string): string {
  return Buffer.from(text).toString("base64url");
}
