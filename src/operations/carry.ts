import type { Database } from "../db/client.js";
import { readEpoch } from "../db/fence.js";
import type { DecidedRequest } from "../db/orders.js";
import { isStage, stageOf } from "../domain/stages.js";
import { SECOND } from "../domain/time.js";
import { pause } from "../lifecycle/pause.js";
import type { LogRarely } from "../observability/logger.js";
import { type Advance, type AdvanceReply, callAdvance, toStage } from "../redis/advance.js";
import type { RedisLink } from "../redis/link.js";
import type { Loads } from "./loads.js";

export interface CarryDeps {
  readonly db: Database;
  readonly redis: RedisLink;
  readonly loads: Loads;
  readonly rarely: LogRarely;
}

/** How long a decision waits for a load that is under way before it is left to the forwarder. */
const WAIT_FOR_LOAD_MS = 10 * SECOND;

/**
 * Carries what the database has decided to Redis, and has the sale loaded again where the database refused what Redis had
 * accepted: also when that was decided by somebody who died before he could say so, or whose COMMIT went unanswered.
 *
 * Safe to repeat. What can't be carried now is carried later, by the load that is asked for here, or by the forwarder.
 * While a load is under way it waits for its end and tries again, so that a buyer need not wait for the forwarder's half
 * minute. @throws a database error
 */
export async function carryDecisions(
  deps: CarryDeps,
  saleId: string,
  decided: readonly DecidedRequest[],
): Promise<void> {
  // Read after the commit: a load that began before it has counted these requests as undecided, and one that came while
  // the decider waited for rows was not asked for by what is found only now.
  const mend = async (reason: "drift" | "damaged") =>
    deps.loads.request(saleId, reason, (await readEpoch(deps.db, saleId)) ?? 0);
  if (decided.some((row) => row.outcome !== "ORDERED" && !row.hasEvents)) await mend("drift");
  const giveUpAt = performance.now() + WAIT_FOR_LOAD_MS;
  let left = decided.map(asAdvance);
  while (left.length > 0) {
    const reply = await tryAdvance(deps, saleId, left);
    if (!reply) return;
    if (reply.kind === "not_loaded") {
      deps.loads.request(saleId, "not_loaded");
      return;
    }
    if (reply.kind === "damaged") {
      deps.rarely("error", { saleId, key: reply.key }, "a key of the sale is damaged");
      return mend("damaged");
    }
    if (reply.results.includes("unknown")) await mend("drift");
    left = left.filter((_, at) => reply.results[at] === "later");
    if (left.length > 0) {
      if (performance.now() > giveUpAt) return;
      await pause(100);
    }
  }
}

/** An event that was not applied brings its units itself: told of its stage before it comes, Redis would refuse them. */
function asAdvance(row: DecidedRequest): Advance {
  const before = row.stageBeforeEvent;
  return before !== null && isStage(before)
    ? toStage(row.requestId, before)
    : toStage(row.requestId, stageOf(row.outcome, row.orderStatus), row.reason);
}

async function tryAdvance(deps: CarryDeps, saleId: string, advances: readonly Advance[]): Promise<AdvanceReply | null> {
  try {
    return await callAdvance(deps.redis, saleId, advances);
  } catch (error) {
    deps.rarely("warn", { saleId, requests: advances.length, err: error }, "decided, but Redis could not be told yet");
    return null;
  }
}
