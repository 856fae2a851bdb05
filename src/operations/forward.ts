import type { JobState } from "bullmq";
import type { NewDeadLetter } from "../db/dead-letters.js";
import { claimDueRequests, type DueRequest, findRowStates, noteRequeued } from "../db/due-requests.js";
import { findDecided } from "../db/orders.js";
import { drilling, failpoint } from "../lifecycle/failpoints.js";
import type { Logger } from "../observability/logger.js";
import type { Metrics } from "../observability/metrics.js";
import type { OrderQueues } from "../queue/queues.js";
import { type RequestInRedis, readPending, readRequestsInRedis } from "../redis/read-sale.js";
import { bury, park } from "./bury.js";
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
export const ATTEMPTS = 5;

const ALIVE: ReadonlySet<JobState | "unknown"> = new Set([
  "waiting",
  "active",
  "delayed",
  "prioritized",
  "waiting-children",
]);

/**
 * Helps on the requests of a sale that got stuck between two stores, whatever died: durable ones whose job was lost are
 * queued again, those whose job failed for good, or is lost again and again, get a dead letter; those that Redis holds pending
 * for too long are journaled if they never were, advanced if they are decided, and taken out of the line if they are parked.
 * It decides nothing and gives nothing back. Safe to run on any number of workers at once.
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
  let standing: ReadonlySet<string> | undefined;
  for (;;) {
    const due: DueRequest[] = await claimDueRequests(deps.db, saleId, after, AT_ONCE, deps.config.tuning.repairAfterMs);
    if (due.length === 0) return;
    standing ??= await deps.queues.standing(saleId);
    const { lost, alive } = await findLost(deps, saleId, due, standing);
    await requeue(
      deps,
      saleId,
      lost.filter((request) => !isHopeless(request)),
    );
    await giveUp(deps, saleId, lost.filter(isHopeless));
    // One that was replayed while the sale was being loaded has its job, and no place in the line yet.
    await park(deps, saleId, alive, "in");
    if (due.length < AT_ONCE) return;
    after = due.at(-1)?.requestId ?? null;
  }
}

/** A due request whose job is not there, or is over. */
interface LostRequest extends DueRequest {
  readonly job: JobState | "unknown";
}

/** Those of the due requests whose jobs are not there, or are over, and the ids of the others. */
async function findLost(
  deps: ForwardDeps,
  saleId: string,
  due: readonly DueRequest[],
  standing: ReadonlySet<string>,
): Promise<{ lost: LostRequest[]; alive: string[] }> {
  // Asked about a single job, BullMQ reads the whole list that it may stand in: of a long line each would take milliseconds.
  const asked = due.filter(({ requestId }) => !standing.has(requestId));
  const states = await deps.queues.states(
    saleId,
    asked.map(({ requestId }) => requestId),
  );
  const lost = asked.flatMap((request, at): LostRequest[] => {
    const job = states[at] ?? "unknown";
    return ALIVE.has(job) ? [] : [{ ...request, job }];
  });
  const gone = new Set(lost.map(({ requestId }) => requestId));
  return { lost, alive: due.map(({ requestId }) => requestId).filter((requestId) => !gone.has(requestId)) };
}

function isHopeless({ job, attempts, lostByLoad }: LostRequest): boolean {
  return !lostByLoad && (job === "failed" || attempts >= ATTEMPTS);
}

async function giveUp(deps: ForwardDeps, saleId: string, hopeless: readonly LostRequest[]): Promise<void> {
  if (hopeless.length === 0) return;
  const failures = await deps.queues.failures(
    saleId,
    hopeless.filter(({ job }) => job === "failed").map(({ requestId }) => requestId),
  );
  const letters = hopeless.map(({ requestId, job, attempts }): NewDeadLetter => {
    const failure = job === "failed" ? failures.shift() : undefined;
    if (!failure) return { requestId, stage: "lost", lastError: `Its job was lost ${attempts} times.`, attempts };
    return { requestId, stage: failure.stage, lastError: failure.error, attempts: failure.attempts };
  });
  deps.metrics.forwarded.inc({ outcome: "given_up" }, letters.length);
  await bury(deps, saleId, letters);
}

async function requeue(deps: ForwardDeps, saleId: string, again: readonly LostRequest[]): Promise<void> {
  if (again.length === 0) return;
  const ids = (requests: readonly LostRequest[]) => requests.map((request) => request.requestId);
  // BullMQ ignores an add whose id it remembers as finished.
  await deps.queues.remove(saleId, ids(again.filter(({ job, attempts }) => job !== "unknown" || attempts > 0)));
  if (drilling) await failpoint("forward.after_remove");
  await deps.queues.add(saleId, ids(again));
  if (drilling) await failpoint("forward.after_add");
  await noteRequeued(deps.db, saleId, again);
  // One that was replayed while Redis was away is not in the line yet.
  await park(deps, saleId, ids(again), "in");
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
  if (stuck.length > 0) await helpOn(deps, saleId, stuck);
  // It waits in line, but what it asked for is gone or can't be read: only the database knows.
  if (readable.length < requests.length) deps.loads.request(saleId, "drift", epoch);
  // The younger ones come after the older ones: once one is too young, so is the rest.
  const reachedYoung = stuck.length < readable.length;
  return reachedYoung || pending.length < AT_ONCE ? 0 : (pending.at(-1)?.seq ?? 0);
}

async function helpOn(deps: ForwardDeps, saleId: string, stuck: readonly RequestInRedis[]): Promise<void> {
  const ids = stuck.map((request) => request.requestId);
  const rows = await findRowStates(deps.db, saleId, ids);
  const decided = await findDecided(
    deps.db,
    saleId,
    ids.filter((requestId) => rows.get(requestId)?.decided),
  );
  await park(
    deps,
    saleId,
    ids.filter((requestId) => rows.get(requestId)?.parked),
    "out",
  );
  if (decided.size > 0) {
    deps.metrics.forwarded.inc({ outcome: "advanced" }, decided.size);
    await carryDecisions(deps, saleId, [...decided.values()]);
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
