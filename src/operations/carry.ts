import { SECOND } from "../domain/time.js";
import { pause } from "../lifecycle/pause.js";
import type { Logger } from "../observability/logger.js";
import { type Advance, type AdvanceReply, callAdvance } from "../redis/advance.js";
import type { RedisLink } from "../redis/link.js";
import type { Loads } from "./loads.js";

export interface CarryDeps {
  readonly redis: RedisLink;
  readonly loads: Loads;
  readonly log: Logger;
}

/** How long a decision waits for a load that is under way before it is left to the forwarder. */
const WAIT_FOR_LOAD_MS = 10 * SECOND;

/**
 * Carries what the database has decided to Redis. Never throws: what can't be carried now is carried later, by the load
 * that is asked for here, or by the forwarder. While a load is under way it waits for its end and tries again, so that
 * a buyer need not wait for the forwarder's half minute.
 */
export async function carryDecisions(
  deps: CarryDeps,
  saleId: string,
  epoch: number,
  advances: readonly Advance[],
): Promise<void> {
  const giveUpAt = performance.now() + WAIT_FOR_LOAD_MS;
  let left = advances;
  while (left.length > 0) {
    const reply = await tryAdvance(deps, saleId, left);
    if (!reply) return;
    if (reply.kind === "not_loaded") {
      deps.loads.request(saleId, "not_loaded");
      return;
    }
    if (reply.kind === "damaged") {
      deps.log.error({ saleId, key: reply.key }, "a key of the sale is damaged");
      deps.loads.request(saleId, "damaged", epoch);
      return;
    }
    if (reply.results.includes("unknown")) deps.loads.request(saleId, "drift", epoch);
    left = left.filter((_, at) => reply.results[at] === "later");
    if (left.length > 0) {
      if (performance.now() > giveUpAt) return;
      await pause(100);
    }
  }
}

async function tryAdvance(deps: CarryDeps, saleId: string, advances: readonly Advance[]): Promise<AdvanceReply | null> {
  try {
    return await callAdvance(deps.redis, saleId, advances);
  } catch (error) {
    deps.log.warn({ saleId, requests: advances.length, err: error }, "decided, but Redis could not be told yet");
    return null;
  }
}
