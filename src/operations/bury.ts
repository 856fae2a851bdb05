import type { Database } from "../db/client.js";
import { type NewDeadLetter, openDeadLetters } from "../db/dead-letters.js";
import { inTransaction } from "../db/transaction.js";
import { drilling, failpoint } from "../lifecycle/failpoints.js";
import type { Logger, LogRarely } from "../observability/logger.js";
import type { Metrics } from "../observability/metrics.js";
import type { RedisLink } from "../redis/link.js";
import { callPark } from "../redis/park.js";

export interface BuryDeps {
  readonly db: Database;
  readonly redis: RedisLink;
  readonly log: Logger;
  readonly rarely: LogRarely;
  readonly metrics: Metrics;
}

/**
 * Gives requests of a sale up to an operator: a dead letter each, the request parked and out of the line. One that was
 * decided meanwhile needs none. Safe to repeat; where Redis can't be told, the forwarder tells it. @throws a database error
 */
export async function bury(deps: BuryDeps, saleId: string, letters: readonly NewDeadLetter[]): Promise<void> {
  const buried = new Set(await inTransaction(deps.db, (tx) => openDeadLetters(tx, saleId, letters)));
  if (drilling) await failpoint("bury.after_commit");
  for (const { requestId, stage, attempts, lastError } of letters) {
    if (!buried.has(requestId)) continue;
    deps.metrics.deadLetters.inc({ stage });
    deps.log.error(
      { saleId, requestId, stage, attempts, why: lastError },
      "a request is given up: it has a dead letter",
    );
  }
  await park(deps, saleId, [...buried], "out");
}

/** Takes requests out of the line or puts them back, where Redis can be told now. */
export async function park(
  deps: Pick<BuryDeps, "redis" | "rarely">,
  saleId: string,
  requestIds: readonly string[],
  where: "out" | "in",
): Promise<void> {
  if (requestIds.length === 0) return;
  try {
    await callPark(deps.redis, saleId, requestIds, where);
  } catch (error) {
    deps.rarely(
      "warn",
      { saleId, where, err: error },
      "the line could not be told of requests that leave it or come back",
    );
  }
}
