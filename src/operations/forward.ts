import type { JobState } from "bullmq";
import { claimDueRequests, type DueRequest, findRowStates, noteRequeued } from "../db/due-requests.js";
import { findDecided } from "../db/orders.js";
import type { Logger } from "../observability/logger.js";
import type { Metrics } from "../observability/metrics.js";
import type { OrderQueues } from "../queue/queues.js";
import { type RequestInRedis, readPending, readRequestsInRedis } from "../redis/read-sale.js";
import { type CarryDeps, carryDecisions } from "./carry.js";
import type { Journal } from "./journal.js";

export interface ForwardDeps extends CarryDeps {
  readonly queues: OrderQueues;
  readonly journal: Journal;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly config: { readonly tuning: { readonly repairAfterMs: number } };
}

const AT_ONCE = 500;
/** How often a lost job is added again before somebody has to look at it. */
const ATTEMPTS = 5;

const ALIVE: ReadonlySet<JobState | "unknown"> = new Set([
  "waiting",
  "active",
  "delayed",
  "prioritized",
  "waiting-children",
]);

/**
 * Helps on the requests of a sale that got stuck between two stores, whatever died: durable ones whose job was lost are
 * queued again; those that Redis holds pending for too long are journaled if they never were, or advanced if they are
 * decided. It decides nothing and gives nothing back. Safe to run on any number of workers at once.
 *
 * `afterSeq` is where the last pass over the pending ones ended; answers with where this one did, 0 at the end.
 */
export async function forward(deps: ForwardDeps, saleId: string, epoch: number, afterSeq: number): Promise<number> {
  await requeueLost(deps, saleId);
  return forwardPending(deps, saleId, epoch, afterSeq);
}

async function requeueLost(deps: ForwardDeps, saleId: string): Promise<void> {
  // By key, so that each is looked at once a pass, also where a pass takes longer than they take to become due again.
  let after: string | null = null;
  for (;;) {
    const due: DueRequest[] = await claimDueRequests(deps.db, saleId, after, AT_ONCE, deps.config.tuning.repairAfterMs);
    if (due.length === 0) return;
    const states = await deps.queues.states(
      saleId,
      due.map((request) => request.requestId),
    );
    const lost = due.filter((_, at) => !ALIVE.has(states[at] ?? "unknown"));
    await requeue(
      deps,
      saleId,
      lost,
      states.filter((state) => !ALIVE.has(state)),
    );
    if (due.length < AT_ONCE) return;
    after = due.at(-1)?.requestId ?? null;
  }
}

async function requeue(
  deps: ForwardDeps,
  saleId: string,
  lost: readonly DueRequest[],
  states: readonly (JobState | "unknown")[],
): Promise<void> {
  const again: DueRequest[] = [];
  const remembered: string[] = [];
  for (const [at, request] of lost.entries()) {
    const failed = states[at] === "failed" && !request.lostByLoad;
    if (failed || (request.attempts >= ATTEMPTS && !request.lostByLoad)) {
      const { requestId, attempts } = request;
      deps.metrics.forwarded.inc({ outcome: "given_up" });
      deps.log.error({ saleId, requestId, attempts, job: states[at] }, "the request can't be decided by itself");
      continue;
    }
    again.push(request);
    // BullMQ ignores an add whose id it remembers as finished.
    if (states[at] !== "unknown") remembered.push(request.requestId);
  }
  if (again.length === 0) return;
  await deps.queues.remove(saleId, remembered);
  await deps.queues.add(
    saleId,
    again.map((request) => request.requestId),
  );
  await noteRequeued(deps.db, saleId, again);
  deps.metrics.forwarded.inc({ outcome: "requeued" }, again.length);
  deps.log.info({ saleId, requests: again.length }, "requests whose job was lost are queued again");
}

async function forwardPending(deps: ForwardDeps, saleId: string, epoch: number, afterSeq: number): Promise<number> {
  const pending = await readPending(deps.redis, saleId, afterSeq, AT_ONCE);
  if (pending.length === 0) return 0;
  const requests = await readRequestsInRedis(
    deps.redis,
    pending.map(({ requestId }) => ({ saleId, requestId })),
  );
  const oldest = deps.redis.clock.now() - deps.config.tuning.repairAfterMs;
  const readable = requests.filter((request) => request !== null);
  const stuck = readable.filter((request) => request.acceptedAt.getTime() < oldest);
  if (stuck.length > 0) await helpOn(deps, saleId, epoch, stuck);
  // It waits in line, but what it asked for is gone or can't be read: only the database knows.
  if (readable.length < requests.length) deps.loads.request(saleId, "drift", epoch);
  // The younger ones come after the older ones: once one is too young, so is the rest.
  const reachedYoung = stuck.length < readable.length;
  return reachedYoung || pending.length < AT_ONCE ? 0 : (pending.at(-1)?.seq ?? 0);
}

async function helpOn(
  deps: ForwardDeps,
  saleId: string,
  epoch: number,
  stuck: readonly RequestInRedis[],
): Promise<void> {
  const ids = stuck.map((request) => request.requestId);
  const rows = await findRowStates(deps.db, saleId, ids);
  const decided = await findDecided(
    deps.db,
    saleId,
    ids.filter((requestId) => rows.get(requestId) === true),
  );
  if (decided.size > 0) {
    deps.metrics.forwarded.inc({ outcome: "advanced" }, decided.size);
    await carryDecisions(deps, saleId, epoch, [...decided.values()]);
  }
  const unjournaled = stuck.filter((request) => !rows.has(request.requestId));
  if (unjournaled.length === 0) return;
  deps.log.info({ saleId, requests: unjournaled.length }, "accepted requests that were never journaled are journaled");
  deps.metrics.forwarded.inc({ outcome: "journaled" }, unjournaled.length);
  const outcomes = await Promise.all(unjournaled.map((request) => deps.journal.add(saleId, request)));
  for (const [at, outcome] of outcomes.entries()) {
    if (outcome.kind !== "failed") continue;
    const requestId = unjournaled[at]?.requestId;
    deps.log.error({ saleId, requestId, err: outcome.error }, "accepted, but the database can't take it");
  }
}
