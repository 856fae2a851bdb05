import { createHmac, createSecretKey, timingSafeEqual } from "node:crypto";
import type { JWTPayload } from "jose";
import { SECOND } from "../domain/time.js";

/** What a token must be of to be ours. */
export interface OrdinaryTokenOptions {
  readonly secret: string;
  readonly issuer: string;
  readonly audience: string;
}

const encoded = (header: object) => Buffer.from(JSON.stringify(header)).toString("base64url");
const HEADERS = new Set([
  encoded({ alg: "HS256" }),
  encoded({ alg: "HS256", typ: "JWT" }),
  encoded({ typ: "JWT", alg: "HS256" }),
]);

/**
 * The claims of a valid token that looks as nearly all do: HS256 with nothing else in its header, one audience, times that
 * leave no doubt. Null for every other one, which may still be valid: that is for the library to say, in a hundred
 * microseconds instead of ten. (A crowd's tokens are all new at the same second.)
 */
export function createOrdinaryVerifier(options: OrdinaryTokenOptions): (token: string) => JWTPayload | null {
  const key = createSecretKey(options.secret, "utf8");
  return (token) => {
    const first = token.indexOf(".");
    const last = token.lastIndexOf(".");
    if (first === last || !HEADERS.has(token.slice(0, first))) return null;
    // As text: other texts that decode to the same bytes are not what we would have written.
    const right = createHmac("sha256", key).update(token.slice(0, last)).digest("base64url");
    const given = token.slice(last + 1);
    if (given.length !== right.length || !timingSafeEqual(Buffer.from(given, "latin1"), Buffer.from(right, "latin1"))) {
      return null;
    }
    const claims = readClaims(token.slice(first + 1, last));
    return claims && isOrdinary(claims, options) ? claims : null;
  };
}

function readClaims(part: string): Record<string, unknown> | null {
  try {
    const claims: unknown = JSON.parse(Buffer.from(part, "base64url").toString("utf8"));
    return typeof claims === "object" && claims !== null && !Array.isArray(claims) ? { ...claims } : null;
  } catch {
    return null;
  }
}

function isOrdinary(claims: Record<string, unknown>, { issuer, audience }: OrdinaryTokenOptions): boolean {
  const now = Date.now() / SECOND;
  const { iss, aud, exp, nbf, iat } = claims;
  return (
    iss === issuer &&
    aud === audience &&
    typeof exp === "number" &&
    exp > now &&
    (nbf === undefined || (typeof nbf === "number" && nbf <= now)) &&
    (iat === undefined || typeof iat === "number")
  );
}
