import { LRUCache } from "lru-cache";
import type { Principal, Verifier } from "./identity.js";

/** About 20 MB of tokens of a common length. Whoever came longest ago goes first, and is verified again. */
const TOKENS_AT_MOST = 50_000;
const CHARACTERS_AT_MOST = 20_000_000;

/**
 * Verifies each token once and remembers whose it is until it expires, or for `atMostMs`: so long a token is still taken
 * whose key was withdrawn. What is not valid is not remembered.
 */
export function rememberTokens(verifier: Verifier, atMostMs: number): Verifier {
  const known = new LRUCache<string, { readonly principal: Principal; readonly until: number }>({
    max: TOKENS_AT_MOST,
    maxSize: CHARACTERS_AT_MOST,
    sizeCalculation: (_known, token) => token.length + 200,
  });
  return {
    async verify(token) {
      const before = known.get(token);
      if (before && Date.now() < before.until) return before.principal;
      const principal = await verifier.verify(token);
      known.set(token, { principal, until: Math.min(principal.expiresAt, Date.now() + atMostMs) });
      return principal;
    },
  };
}
