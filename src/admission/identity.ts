/** Who is calling: a verified token, or nobody. The only code that looks inside a token. */
import { createSecretKey } from "node:crypto";
import {
  createRemoteJWKSet,
  errors,
  type JWTPayload,
  type JWTVerifyGetKey,
  type JWTVerifyOptions,
  jwtVerify,
} from "jose";
import type { Config } from "../config.js";
import { SluiceError, serviceUnavailable } from "../domain/errors.js";
import { buyerIdOf } from "../domain/ids.js";
import { SECOND } from "../domain/time.js";
import { createOrdinaryVerifier } from "./ordinary-token.js";

/** What a token may be: one of these, in its claim `role`. */
export const ROLES = ["buyer", "operator", "payments"] as const;
export type Role = (typeof ROLES)[number];

/** An authenticated caller. */
export interface Principal {
  readonly role: Role;
  /** the token's subject as every store knows it, whatever the role */
  readonly buyerId: string;
  /** when the token stops being one, in milliseconds since 1970 */
  readonly expiresAt: number;
}

export interface Verifier {
  /**
   * The token's principal.
   * @throws SluiceError UNAUTHENTICATED for a token that is not valid here, SERVICE_UNAVAILABLE while the keys can't be
   * fetched: then nothing is known about the token, and the same one may be sent again.
   */
  verify(token: string): Promise<Principal>;
}

const LONGEST_SUBJECT = 10_000;

/** Never a symmetric algorithm: a public key must not be usable as an HMAC secret. */
const PUBLIC_KEY_ALGORITHMS = ["RS256", "ES256", "EdDSA", "PS256"] as const;

const JWKS = {
  /** below the request's deadline of 2 s */
  timeoutDuration: 1.5 * SECOND,
  /** an unknown key id fetches the set again this often at most: a rotated key is honoured soon, a forger can't flood the issuer */
  cooldownDuration: 5 * SECOND,
};

/** A verifier for the configured issuer: JWT_JWKS_URL where it is set, else HS256 with JWT_SECRET. */
export function createVerifier(
  config: Pick<Config, "JWT_SECRET" | "JWT_JWKS_URL" | "JWT_ISSUER" | "JWT_AUDIENCE">,
): Verifier {
  const { resolveKey, algorithms } = keysOf(config);
  const { JWT_JWKS_URL, JWT_SECRET: secret, JWT_ISSUER: issuer, JWT_AUDIENCE: audience } = config;
  const ordinary = !JWT_JWKS_URL && secret ? createOrdinaryVerifier({ secret, issuer, audience }) : null;
  const options: JWTVerifyOptions = {
    algorithms,
    issuer: config.JWT_ISSUER,
    audience: config.JWT_AUDIENCE,
    requiredClaims: ["exp"],
    clockTolerance: 5,
  };
  return {
    async verify(token) {
      try {
        return principalOf(ordinary?.(token) ?? (await jwtVerify(token, resolveKey, options)).payload);
      } catch (error) {
        // Whatever a hostile token makes of the parsers below, it is one thing: not valid.
        throw error instanceof SluiceError ? error : unauthenticated(reasonOf(error), error);
      }
    },
  };
}

/**
 * The caller that an Authorization header names: null where there is no header.
 * @throws SluiceError UNAUTHENTICATED for anything but a valid Bearer token: a bad token is never taken for an anonymous
 * caller, who would see less than he asked for without being told why. Or SERVICE_UNAVAILABLE, as `verify`.
 */
export async function principalFromAuthorization(
  verifier: Verifier,
  header: string | null | undefined,
): Promise<Principal | null> {
  if (header === null || header === undefined) return null;
  const token = /^Bearer +(\S+) *$/i.exec(header)?.[1];
  if (!token) throw unauthenticated("The Authorization header must look like: Bearer <token>");
  return verifier.verify(token);
}

/** The error for a caller who is nobody yet. */
export function unauthenticated(message: string, cause?: unknown): SluiceError {
  return new SluiceError("UNAUTHENTICATED", message, undefined, { cause });
}

function keysOf(config: Pick<Config, "JWT_SECRET" | "JWT_JWKS_URL">): {
  resolveKey: JWTVerifyGetKey;
  algorithms: NonNullable<JWTVerifyOptions["algorithms"]>;
} {
  if (config.JWT_JWKS_URL) {
    const remote = createRemoteJWKSet(new URL(config.JWT_JWKS_URL), JWKS);
    return { resolveKey: orUnavailable(remote), algorithms: [...PUBLIC_KEY_ALGORITHMS] };
  }
  if (!config.JWT_SECRET) throw new Error("neither JWT_JWKS_URL nor JWT_SECRET is set");
  const secret = createSecretKey(config.JWT_SECRET, "utf8");
  return { resolveKey: () => Promise.resolve(secret), algorithms: ["HS256"] };
}

/** Tells "no such key" from "the keys can't be had": only the first says something about the token. */
function orUnavailable(remote: ReturnType<typeof createRemoteJWKSet>): JWTVerifyGetKey {
  return async (header, token) => {
    try {
      return await remote(header, token);
    } catch (error) {
      const aboutToken = error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys;
      throw aboutToken ? error : serviceUnavailable("Tokens can't be verified at the moment.", error);
    }
  };
}

function principalOf(claims: JWTPayload): Principal {
  const { sub, exp } = claims;
  const role = ROLES.find((known) => known === claims.role);
  if (!role) throw unauthenticated(`The token's claim "role" must be one of: ${ROLES.join(", ")}.`);
  if (typeof sub !== "string" || sub === "" || sub.length > LONGEST_SUBJECT) {
    throw unauthenticated(`The token's claim "sub" must be a text of 1 to ${LONGEST_SUBJECT} characters.`);
  }
  if (exp === undefined) throw unauthenticated('The token has no claim "exp".');
  return { role, buyerId: buyerIdOf(sub), expiresAt: exp * SECOND };
}

function reasonOf(error: unknown): string {
  if (error instanceof errors.JWTExpired) return "The token has expired.";
  if (error instanceof errors.JWTClaimValidationFailed) return `The token's claim "${error.claim}" is not accepted.`;
  return "The token is not valid.";
}
