import type { Database } from "../db/client.js";
import { isContention, isDatabaseUnavailable } from "../db/errors.js";
import { findJournaled, insertRequests, type JournaledRow, type JournalRow } from "../db/journal.js";
import { inOneStatement } from "../db/transaction.js";
import { SECOND } from "../domain/time.js";
import type { DependencyHealth } from "../lifecycle/dependency-health.js";
import { drilling, failpoint } from "../lifecycle/failpoints.js";
import { type Gather, gather } from "../lifecycle/gather.js";
import type { LogRarely } from "../observability/logger.js";
import type { Metrics } from "../observability/metrics.js";
import type { OrderQueues } from "../queue/queues.js";
import { callAdvance, toStage } from "../redis/advance.js";
import type { RedisLink } from "../redis/link.js";
import type { Loads } from "./loads.js";

export interface JournalDeps {
  readonly db: Database;
  readonly redis: RedisLink;
  readonly queues: OrderQueues;
  readonly loads: Loads;
  readonly databaseHealth: DependencyHealth;
  readonly rarely: LogRarely;
  readonly metrics: Metrics;
  readonly config: {
    readonly tuning: {
      readonly journal: { readonly maxRequests: number; readonly maxWaitMs: number };
      readonly repairAfterMs: number;
    };
  };
}

/** What became of an accepted request on its way into the database. */
export type JournalOutcome =
  /** its row is committed, by this call or an earlier one: QUEUED may be said */
  | { kind: "journaled" }
  /** the sale was loaded meanwhile, which forgot the acceptance: it never happened */
  | { kind: "refused" }
  /** the request has a row already, written by another acceptance */
  | { kind: "other"; row: JournaledRow }
  /** the database can't take this row, whatever is tried */
  | { kind: "failed"; error: Error };

/** Makes accepted requests durable, those of a few milliseconds in one insert. */
export interface Journal {
  /**
   * Safe to repeat. Rejects with a database error when it is not known whether the row was written; the forwarder finds
   * out later.
   */
  add(saleId: string, row: JournalRow): Promise<JournalOutcome>;
  /** False when so much waits that nothing more should be accepted. */
  hasRoom(): boolean;
  /** Resolves once everything handed over is done with. */
  drained(): Promise<void>;
}

/** Groups under way at once in a process: more only wait for each other's connections. */
const GROUPS_AT_ONCE = 4;
const WAITING_AT_MOST = 10_000;

export function createJournal(deps: JournalDeps): Journal {
  const sales = new Map<string, Gather<JournalRow, JournalOutcome>>();
  const { maxRequests, maxWaitMs } = deps.config.tuning.journal;

  const gatherOf = (saleId: string) => {
    let group = sales.get(saleId);
    if (!group) {
      group = gather({
        maxItems: maxRequests,
        maxWaitMs,
        maxRuns: GROUPS_AT_ONCE,
        run: (rows, answer) => journalGroup(deps, saleId, rows, answer),
      });
      sales.set(saleId, group);
    }
    return group;
  };

  return {
    add: (saleId, row) => gatherOf(saleId).add(row),
    hasRoom: () => [...sales.values()].reduce((sum, group) => sum + group.waiting(), 0) < WAITING_AT_MOST,
    async drained() {
      await Promise.all([...sales.values()].map((group) => group.drained()));
    },
  };
}

/**
 * Inserts a group under the sale's fence, in one statement, and answers for it once that is committed; then hands its
 * requests to the queue and moves them to QUEUED, both in one burst. A crash in between loses nothing: the rows are due in half a minute.
 */
export async function journalGroup(
  deps: JournalDeps,
  saleId: string,
  rows: readonly JournalRow[],
  answer: (outcomes: readonly JournalOutcome[]) => void,
): Promise<void> {
  const started = performance.now();
  const written = await insertOrSplit(deps, saleId, rows);
  if (drilling) await failpoint("journal.after_commit");
  deps.metrics.journalSeconds.observe((performance.now() - started) / SECOND);

  const outcomes = rows.map((row) => outcomeOf(row, written));
  const counts = new Map<JournalOutcome["kind"], number>();
  for (const [at, outcome] of outcomes.entries()) {
    counts.set(outcome.kind, (counts.get(outcome.kind) ?? 0) + 1);
    const row = rows[at] as JournalRow;
    // Refused: the database is in a newer epoch than the Redis that accepted. Accepted in the present epoch in spite of
    // an older row: Redis had lost the request, and has taken its units twice.
    if (outcome.kind === "refused") deps.loads.request(saleId, "not_loaded");
    if (outcome.kind === "other" && row.epoch === written.epoch) deps.loads.request(saleId, "drift", row.epoch);
  }
  for (const [outcome, count] of counts) deps.metrics.journaled.inc({ outcome }, count);
  answer(outcomes);

  // In the order in which they were accepted: so they stand in line.
  const fresh = [...new Set(rows.filter((row) => written.inserted.has(row.requestId)).map((row) => row.requestId))];
  if (fresh.length > 0) await enqueue(deps, saleId, fresh, written.epoch);
}

interface Written {
  readonly epoch: number | null;
  readonly inserted: ReadonlySet<string>;
  readonly rows: ReadonlyMap<string, JournaledRow>;
  readonly failed: ReadonlyMap<string, Error>;
}

/** Inserts a group; a row that can't be taken is found by splitting, and its neighbours go in. */
async function insertOrSplit(deps: JournalDeps, saleId: string, rows: readonly JournalRow[]): Promise<Written> {
  try {
    return await insertUnderFence(deps, saleId, rows);
  } catch (error) {
    if (isDatabaseUnavailable(error)) {
      deps.databaseHealth.reportFailure();
      throw error;
    }
    if (isContention(error) || !(error instanceof Error)) throw error;
    const first = rows[0];
    if (rows.length <= 1 && first) {
      return { epoch: null, inserted: new Set(), rows: new Map(), failed: new Map([[first.requestId, error]]) };
    }
    const half = Math.ceil(rows.length / 2);
    const a = await insertOrSplit(deps, saleId, rows.slice(0, half));
    const b = await insertOrSplit(deps, saleId, rows.slice(half));
    return {
      epoch: b.epoch ?? a.epoch,
      inserted: new Set([...a.inserted, ...b.inserted]),
      rows: new Map([...a.rows, ...b.rows]),
      failed: new Map([...a.failed, ...b.failed]),
    };
  }
}

async function insertUnderFence(deps: JournalDeps, saleId: string, rows: readonly JournalRow[]): Promise<Written> {
  const unique = [...new Map(rows.map((row) => [row.requestId, row])).values()];
  const { epoch, requestIds: inserted } = await inOneStatement(
    deps.db,
    (tx) => insertRequests(tx, saleId, unique, deps.config.tuning.repairAfterMs),
    drilling ? passBeforeCommit : null,
  );
  const failed = new Map<string, Error>();
  const own = unique.filter((row) => inserted.has(row.requestId));
  const found = new Map<string, JournaledRow>(own.map((row) => [row.requestId, row]));
  if (own.length < unique.length) {
    // A statement of its own: it sees what others committed while the insert waited for them.
    const others = unique.filter((row) => !inserted.has(row.requestId)).map((row) => row.requestId);
    for (const [requestId, row] of await findJournaled(deps.db, saleId, others)) found.set(requestId, row);
  }
  return { epoch, inserted, rows: found, failed };
}

async function passBeforeCommit(): Promise<void> {
  if (drilling) await failpoint("journal.before_commit");
}

function outcomeOf(row: JournalRow, written: Written): JournalOutcome {
  const error = written.failed.get(row.requestId);
  if (error) return { kind: "failed", error };
  const found = written.rows.get(row.requestId);
  if (!found) return { kind: "refused" };
  return found.epoch === row.epoch && found.seq === row.seq ? { kind: "journaled" } : { kind: "other", row: found };
}

async function enqueue(
  deps: JournalDeps,
  saleId: string,
  requestIds: readonly string[],
  epoch: number | null,
): Promise<void> {
  if (drilling) await failpoint("journal.before_enqueue");
  const [added, advanced] = await Promise.allSettled([
    deps.queues.add(saleId, requestIds),
    callAdvance(
      deps.redis,
      saleId,
      requestIds.map((requestId) => toStage(requestId, "QUEUED")),
    ),
  ]);
  if (drilling) await failpoint("journal.after_enqueue");
  for (const result of [added, advanced]) {
    // They are durable: the forwarder does what was left undone here.
    if (result.status === "rejected") {
      const fields = { saleId, requests: requestIds.length, err: result.reason };
      deps.rarely("warn", fields, "journaled, but not handed on yet");
    }
  }
  if (advanced.status === "fulfilled" && advanced.value.kind === "ok" && epoch !== null) {
    if (advanced.value.results.includes("unknown")) deps.loads.request(saleId, "drift", epoch);
  }
}
