import type { RedisLink, ServerFacts } from "./link.js";

/**
 * Why a server can't be sold from, in one line with its remedy, or null. Evicting one loses stock and holders one by one,
 * which no load would notice; one without an append-only file loses the queue and what was just accepted at every restart:
 * the database makes that good, at the price of a load, which is fine for a developer's own Redis and not in production.
 */
export function unfitBecause(facts: ServerFacts, production: boolean): string | null {
  if (facts.evictionPolicy !== "noeviction") {
    return `Redis evicts keys when its memory is full (maxmemory-policy ${facts.evictionPolicy}). Set it to noeviction.`;
  }
  if (!facts.appendOnly && production) return "Redis keeps no append-only file. Set appendonly yes.";
  return null;
}

/** Meets the server at start, where there is one: resolves with what is wrong with it, or null also while it is away. */
export async function findUnfitness(link: RedisLink, waitMs: number): Promise<string | null> {
  await link.whenUsable(waitMs).catch(() => {});
  return link.unfit();
}
