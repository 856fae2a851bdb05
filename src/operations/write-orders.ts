import { describeDatabaseError, isContention, isDatabaseUnavailable } from "../db/errors.js";
import { readEpoch } from "../db/fence.js";
import {
  type DecidedRequest,
  type Decision,
  decideRequests,
  findDecided,
  insertLockMovements,
  insertOrders,
  lockOpenRequests,
  lockStock,
  lockUnits,
  type OpenRequest,
} from "../db/orders.js";
import { inTransaction } from "../db/transaction.js";
import { SECOND } from "../domain/time.js";
import type { DependencyHealth } from "../lifecycle/dependency-health.js";
import { drilling, failpoint } from "../lifecycle/failpoints.js";
import type { Metrics } from "../observability/metrics.js";
import { type CarryDeps, carryDecisions } from "./carry.js";

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
 * Decides accepted requests of one sale and writes their orders, all in one transaction, then tells Redis. Results are
 * in the order of the ids.
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
  const batch = await inTransaction(deps.db, async (tx) => {
    let open = await lockOpenRequests(tx, saleId, requestIds);
    const epoch = (await readEpoch(tx, saleId)) ?? 0;
    if (open.length === 0) return { epoch, decisions: [], ordered: [] };

    const available = await lockStock(tx, saleId, [...new Set(open.map((request) => request.itemId))].sort());
    const ordered: OpenRequest[] = [];
    const refused: OpenRequest[] = [];
    // One that another valid order of its buyer stands against leaves its units to those behind it.
    for (let candidates = fitting(open, available); candidates.length > 0; candidates = fitting(open, available)) {
      const written = await insertOrders(tx, saleId, candidates);
      for (const request of candidates) {
        if (!written.has(request.requestId)) {
          refused.push(request);
          continue;
        }
        ordered.push(request);
        available.set(request.itemId, (available.get(request.itemId) ?? 0) - request.quantity);
      }
      const tried = new Set(candidates);
      open = open.filter((request) => !tried.has(request));
    }
    const decisions: Decision[] = [
      ...ordered.map(({ requestId }) => ({ requestId, outcome: "ORDERED" as const, reason: null })),
      ...refused.map(({ requestId }) => ({
        requestId,
        outcome: "FAILED" as const,
        reason: "PROCESSING_FAILED" as const,
      })),
      ...open.map(({ requestId }) => ({ requestId, outcome: "SOLD_OUT" as const, reason: "STOCK_GONE" as const })),
    ];
    if (ordered.length > 0) await lockUnits(tx, saleId, unitsByItem(ordered));
    if (drilling) await failpoint("write.after_stock");
    await decideRequests(tx, saleId, decisions);
    if (ordered.length > 0) await insertLockMovements(tx, saleId, ordered);
    if (drilling) await failpoint("write.before_commit");
    return { epoch, decisions, ordered };
  });
  if (drilling) await failpoint("write.after_commit");
  deps.metrics.writeSeconds.observe((performance.now() - started) / SECOND);
  for (const { ageSeconds } of batch.ordered) deps.metrics.orderDelaySeconds.observe(ageSeconds);
  return report(deps, saleId, requestIds, batch);
}

/** Those of the requests that there is stock for, the earliest accepted first, one of each buyer. */
function fitting(open: readonly OpenRequest[], available: ReadonlyMap<string, number>): OpenRequest[] {
  const left = new Map(available);
  const buyers = new Set<string>();
  const fit = [...open]
    .sort((a, b) => a.seq - b.seq)
    .filter((request) => {
      const units = left.get(request.itemId) ?? 0;
      if (units < request.quantity || buyers.has(request.buyerId)) return false;
      buyers.add(request.buyerId);
      left.set(request.itemId, units - request.quantity);
      return true;
    });
  return fit.sort((a, b) => (a.requestId < b.requestId ? -1 : 1));
}

function unitsByItem(requests: readonly OpenRequest[]): Map<string, number> {
  const units = new Map<string, number>();
  for (const { itemId, quantity } of requests) units.set(itemId, (units.get(itemId) ?? 0) + quantity);
  return units;
}

/** Tells Redis, and gathers what became of each request: also of those that had been decided before. */
async function report(
  deps: WriteOrdersDeps,
  saleId: string,
  requestIds: readonly string[],
  batch: { readonly epoch: number; readonly decisions: readonly Decision[] },
): Promise<Map<string, WriteResult>> {
  const decided = new Map<string, DecidedRequest>();
  for (const decision of batch.decisions) {
    deps.metrics.decided.add(saleId, decision.outcome.toLowerCase());
    const orderStatus = decision.outcome === "ORDERED" ? ("PENDING_PAYMENT" as const) : null;
    decided.set(decision.requestId, { ...decision, orderStatus, hasEvents: false, stageBeforeEvent: null });
  }
  if (decided.size < requestIds.length) {
    const earlier = requestIds.filter((requestId) => !decided.has(requestId));
    for (const [requestId, row] of await findDecided(deps.db, saleId, earlier)) decided.set(requestId, row);
  }
  if (batch.decisions.some((decision) => decision.outcome !== "ORDERED")) {
    deps.rarely("error", { saleId, epoch: batch.epoch }, "the database refused what Redis had accepted");
  }
  if (drilling) await failpoint("write.before_confirm");
  await carryDecisions(deps, saleId, batch.epoch, [...decided.values()]);
  return new Map([...decided].map(([requestId, decision]) => [requestId, { kind: "decided", decision }]));
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
