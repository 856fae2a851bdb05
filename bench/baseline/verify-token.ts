import { webcrypto } from "node:crypto";
import { GraphQLError } from "graphql";
import { jwtVerify } from "jose";
import { buyerIdOf } from "../../src/domain/ids.js";
import { setting } from "../as-program.js";

/** The buyer that an Authorization header names. @throws GraphQLError UNAUTHENTICATED, FORBIDDEN for who is no buyer */
export type VerifyBuyer = (authorization: string | undefined) => Promise<string>;

/** Tokens signed with JWT_SECRET (HS256), of JWT_ISSUER, for JWT_AUDIENCE: every one is verified, at every request. */
export async function createVerifier(): Promise<VerifyBuyer> {
  const secret = new TextEncoder().encode(setting("JWT_SECRET"));
  // Once: jose would import a secret or a KeyObject anew for each token.
  const key = await webcrypto.subtle.importKey("raw", secret, { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
  const options = {
    algorithms: ["HS256"],
    issuer: setting("JWT_ISSUER", "sluice"),
    audience: setting("JWT_AUDIENCE", "sluice"),
    requiredClaims: ["exp", "sub"],
  };
  return async (authorization) => {
    const token = authorization?.startsWith("Bearer ") ? authorization.slice("Bearer ".length) : "";
    const { payload } = await jwtVerify(token, key, options).catch(() => refuse("UNAUTHENTICATED"));
    if (payload.role !== "buyer") refuse("FORBIDDEN");
    return buyerIdOf(payload.sub ?? "");
  };
}

function refuse(code: "UNAUTHENTICATED" | "FORBIDDEN"): never {
  throw new GraphQLError("Only a buyer can reserve.", { extensions: { code } });
}
