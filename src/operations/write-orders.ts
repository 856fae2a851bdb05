import { describeDatabaseError, isContention, isDatabaseUnavailable } from "../db/errors.js";
import { writeOrdersThatFit } from "../db/fitting-orders.js";
import { type DecidedRequest, type Decision, findDecided } from "../db/orders.js";
import { inOneStatement, inTransaction } from "../db/transaction.js";
import { SECOND } from "../domain/time.js";
import type { DependencyHealth } from "../lifecycle/dependency-health.js";
import { drilling, failpoint } from "../lifecycle/failpoints.js";
import type { Metrics } from "../observability/metrics.js";
import { type CarryDeps, carryDecisions } from "./carry.js";
import { asOrdered, decideApart } from "./decide-apart.js";

export interface WriteOrdersDeps extends CarryDeps {
  readonly databaseHealth: DependencyHealth;
  readonly metrics: Metrics;
}

/** What became of one request of a batch. */
export type WriteResult =
  | { kind: "decided"; decision: DecidedRequest }
  /** the database can't answer now: no fault of the request */
  | { kind: "put_off"; why: string }
  /** the request itself can't be written */
  | { kind: "failed"; error: Error }
  /** no such request was ever journaled */
  | { kind: "missing" };

/**
 * Decides accepted requests of one sale and writes their orders, all in one statement where all can have one, then tells
 * Redis. Results are in the order of the ids.
 *
 * Safe to repeat: a request that is decided is looked up, also when the reply to its COMMIT was lost. One that can't be
 * written is found by splitting the batch; its neighbours are written. Never throws for a request's own fault.
 */
export async function writeOrders(
  deps: WriteOrdersDeps,
  saleId: string,
  requestIds: readonly string[],
): Promise<WriteResult[]> {
  const results = await writeOrSplit(deps, saleId, [...new Set(requestIds)]);
  return requestIds.map((requestId) => results.get(requestId) ?? { kind: "missing" });
}

async function writeOrSplit(
  deps: WriteOrdersDeps,
  saleId: string,
  requestIds: readonly string[],
): Promise<Map<string, WriteResult>> {
  try {
    return await writeBatch(deps, saleId, requestIds);
  } catch (error) {
    const everyone = (result: WriteResult) => new Map(requestIds.map((requestId) => [requestId, result]));
    if (isDatabaseUnavailable(error)) {
      deps.databaseHealth.reportFailure();
      return everyone({ kind: "put_off", why: describeDatabaseError(error) });
    }
    if (isContention(error)) return everyone({ kind: "put_off", why: describeDatabaseError(error) });
    if (requestIds.length === 1) return everyone({ kind: "failed", error: asError(error) });
    const half = Math.ceil(requestIds.length / 2);
    const first = await writeOrSplit(deps, saleId, requestIds.slice(0, half));
    const second = await writeOrSplit(deps, saleId, requestIds.slice(half));
    return new Map([...first, ...second]);
  }
}

async function writeBatch(
  deps: WriteOrdersDeps,
  saleId: string,
  requestIds: readonly string[],
): Promise<Map<string, WriteResult>> {
  const started = performance.now();
  if (drilling) await failpoint("write.before_begin");
  const written = await inOneStatement(
    deps.db,
    (tx) => writeOrdersThatFit(tx, saleId, requestIds),
    drilling ? passBeforeCommit : null,
  );
  const decisions = written.requestIds.map(asOrdered);
  const ages = [...written.ages];
  if (written.left > 0) {
    const apart = await inTransaction(deps.db, async (tx) => {
      const result = await decideApart(tx, saleId, requestIds);
      await passBeforeCommit();
      return result;
    });
    decisions.push(...apart.decisions);
    ages.push(...apart.ages);
  }
  if (drilling) await failpoint("write.after_commit");
  deps.metrics.writeSeconds.observe((performance.now() - started) / SECOND);
  for (const age of ages) deps.metrics.orderDelaySeconds.observe(age);
  return report(deps, saleId, requestIds, decisions);
}

async function passBeforeCommit(): Promise<void> {
  if (drilling) await failpoint("write.after_stock");
  if (drilling) await failpoint("write.before_commit");
}

/** Tells Redis, and gathers what became of each request: also of those that had been decided before. */
async function report(
  deps: WriteOrdersDeps,
  saleId: string,
  requestIds: readonly string[],
  decisions: readonly Decision[],
): Promise<Map<string, WriteResult>> {
  const decided = new Map<string, DecidedRequest>();
  for (const decision of decisions) {
    deps.metrics.decided.add(saleId, decision.outcome.toLowerCase());
    const orderStatus = decision.outcome === "ORDERED" ? ("PENDING_PAYMENT" as const) : null;
    decided.set(decision.requestId, { ...decision, orderStatus, hasEvents: false, stageBeforeEvent: null });
  }
  if (decided.size < requestIds.length) {
    const earlier = requestIds.filter((requestId) => !decided.has(requestId));
    for (const [requestId, row] of await findDecided(deps.db, saleId, earlier)) decided.set(requestId, row);
  }
  if (decisions.some((decision) => decision.outcome !== "ORDERED")) {
    deps.rarely("error", { saleId }, "the database refused what Redis had accepted");
  }
  if (drilling) await failpoint("write.before_confirm");
  await carryDecisions(deps, saleId, [...decided.values()]);
  return new Map([...decided].map(([requestId, decision]) => [requestId, { kind: "decided", decision }]));
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
