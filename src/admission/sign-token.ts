import { SignJWT } from "jose";
import type { Role } from "./identity.js";

/** What a token says, and who will believe it. */
export interface TokenInput {
  /** HS256 key, at least 32 characters. */
  readonly secret: string;
  readonly issuer: string;
  readonly audience: string;
  readonly role: Role;
  /** Becomes the claim `sub`. */
  readonly userId: string;
  /** @defaultValue a day */
  readonly expiresInSeconds?: number;
}

const DAY_SECONDS = 24 * 60 * 60;

/**
 * Signs a token with the secret that the API verifies with (HS256). For development, tests and the commands: in production
 * tokens come from an identity provider, and the API has JWT_JWKS_URL instead of a secret.
 */
export function signToken({
  secret,
  issuer,
  audience,
  role,
  userId,
  expiresInSeconds = DAY_SECONDS,
}: TokenInput): Promise<string> {
  const now = Math.floor(Date.now() / 1_000);
  return new SignJWT({ role })
    .setProtectedHeader({ alg: "HS256", typ: "JWT" })
    .setSubject(userId)
    .setIssuer(issuer)
    .setAudience(audience)
    .setIssuedAt(now)
    .setExpirationTime(now + expiresInSeconds)
    .sign(new TextEncoder().encode(secret));
}
