import { randomUUID } from "node:crypto";
import type { Database, Tx } from "../db/client.js";
import { takeFenceExclusive } from "../db/fence.js";
import {
  beginEpoch,
  endLease,
  extendLease,
  type LoadRow,
  makeDue,
  readLease,
  readLoadRows,
  readUnpromisedUnits,
} from "../db/load.js";
import { findSales } from "../db/sales.js";
import { inTransaction } from "../db/transaction.js";
import { serviceUnavailable } from "../domain/errors.js";
import type { Sale } from "../domain/model.js";
import { SEQ_PER_EPOCH } from "../domain/sale-state.js";
import { isStage, STAGES, stageOf } from "../domain/stages.js";
import { REMEMBERED_AFTER_CLOSE_MS, SECOND } from "../domain/time.js";
import { drilling, failpoint } from "../lifecycle/failpoints.js";
import { pause } from "../lifecycle/pause.js";
import type { Logger } from "../observability/logger.js";
import type { Metrics } from "../observability/metrics.js";
import type { RedisLink } from "../redis/link.js";
import { beginLoad, finishLoad, LOAD_CHUNK, type LoadReply, type LoadRequest, loadChunk } from "../redis/load.js";
import { readSalesInRedis } from "../redis/read-sale.js";

export interface LoadDeps {
  readonly db: Database;
  readonly reads: Database;
  readonly redis: RedisLink;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly config: { readonly BACKLOG_LIMIT: number };
}

/** What makes a load necessary; a name for logs and metrics. */
export type LoadReason = "opened" | "not_loaded" | "drift" | "damaged" | "adjusted" | "asked";

export interface LoadRequestOptions {
  readonly reason: LoadReason;
  /**
   * The epoch in which something was seen that a load has to mend: a newer one will do. Null: whatever is loaded will do.
   */
  readonly mendsEpoch: number | null;
  /**
   * What else is done in the transaction that begins the epoch: nothing is promised meanwhile, and what it changes is what is
   * loaded. It may run again where others were in the way. What it throws ends the load, with nothing changed.
   */
  readonly alongside?: (tx: Tx) => Promise<void>;
}

export type LoadOutcome =
  | { kind: "loaded" | "already_loaded"; epoch: number }
  /** a draft, a sale closed more than a week ago, or no sale */
  | { kind: "not_loadable" };

const LEASE_MS = 10 * SECOND;
const GIVE_UP_MS = 60 * SECOND;
/** Rows of one reading. Each costs a look-up, and each reading up to a pass over the keys that are left. */
const ROWS_AT_ONCE = 2_000;
/** Rows of one update, well within the time that a statement may take, also on a database that has much else to do. */
const CHANGED_AT_ONCE = 250;
/** A thousand million epochs, which the database's int can hold. */
const SEQ_AT_MOST = 1_000_000_000 * SEQ_PER_EPOCH;

/** A change number as Redis told it, or 0 where that is nonsense: a load must not fail for what it is to mend. */
export function plausibleSeq(seq: number | undefined): number {
  return seq !== undefined && Number.isSafeInteger(seq) && seq >= 0 && seq < SEQ_AT_MOST ? seq : 0;
}

/** Whether Redis may hold such a sale: it was opened, and did not close more than a week before `now`. */
export function isLoadable(sale: Pick<Sale, "state" | "closesAt">, now: number): boolean {
  return sale.state !== "DRAFT" && sale.closesAt.getTime() + REMEMBERED_AFTER_CLOSE_MS > now;
}

/**
 * Loads a sale into Redis from the database's truth: opening, recovery and drift are all this one thing. Safe to call at
 * any time and from anywhere: who finds another load under way waits for it.
 *
 * @throws RedisUnavailableError, a database error, or SERVICE_UNAVAILABLE where it could not be done within a minute;
 *   the sale then stays closed to buyers, and the next call starts over in a newer epoch.
 */
export async function loadSale(deps: LoadDeps, saleId: string, options: LoadRequestOptions): Promise<LoadOutcome> {
  const giveUpAt = performance.now() + GIVE_UP_MS;
  let waitMs = 50;
  while (performance.now() < giveUpAt) {
    const [sale] = await findSales(deps.db, [saleId]);
    if (!sale || !isLoadable(sale, deps.redis.clock.now())) return { kind: "not_loadable" };
    // The lease before Redis: where it is free, no load that this reading of Redis missed can have ended since.
    const lease = await readLease(deps.db, saleId);
    const [present] = await readSalesInRedis(deps.redis, [saleId]);
    const willDo =
      !options.alongside &&
      present?.loaded &&
      present.epoch === lease?.epoch &&
      present.epoch > (options.mendsEpoch ?? -1);
    if (present && willDo) return { kind: "already_loaded", epoch: present.epoch };

    if (lease && !lease.taken) {
      // Also above an epoch that the database has forgotten, set back to a backup: Redis would not go back to a lower one.
      const seqSeen = Math.max(plausibleSeq(present?.seq), plausibleSeq((present?.epoch ?? 0) * SEQ_PER_EPOCH));
      const epoch = await tryLoad(deps, saleId, lease.epoch, options, seqSeen);
      if (epoch !== null) return { kind: "loaded", epoch };
    }
    // Further and further apart: epochs are counted, and two loads that overtake each other must not go on for ever.
    await pause(waitMs * (0.5 + Math.random()));
    waitMs = Math.min(waitMs * 1.5, 2 * SECOND);
  }
  throw serviceUnavailable("The sale could not be loaded in time.");
}

/** One attempt: the epoch it loaded, or null where another load has the lease or has overtaken this one. */
async function tryLoad(
  deps: LoadDeps,
  saleId: string,
  fromEpoch: number,
  options: LoadRequestOptions,
  seqSeen: number,
): Promise<number | null> {
  const started = performance.now();
  const log = deps.log.child({ saleId, load: randomUUID().slice(0, 8), reason: options.reason });
  const start = await inTransaction(deps.db, async (tx) => {
    await takeFenceExclusive(tx, saleId);
    const begun = await beginEpoch(tx, saleId, fromEpoch, LEASE_MS, seqSeen);
    if (begun) await options.alongside?.(tx);
    return begun && { ...begun, remaining: await readUnpromisedUnits(tx, saleId) };
  });
  if (!start) return null;

  const { epoch } = start;
  if (drilling) await failpoint("load.after_epoch");
  try {
    const remaining = clampNegative(start.remaining, (itemId, units) => {
      deps.metrics.drift.inc({ stage: "load" });
      log.error({ itemId, units }, "more units were promised than there are: none are offered");
    });
    const backlogLimit = deps.config.BACKLOG_LIMIT;
    if (!isOk(await beginLoad(deps.redis, { saleId, backlogLimit, ...start, remaining }))) return null;
    const lease = holdLease(deps, saleId, epoch);
    const requests = await loadRequests(deps, saleId, epoch, lease);
    if (requests === null) return null;
    if (drilling) await failpoint("load.before_ready");
    if (!isOk(await finishLoad(deps.redis, saleId, epoch))) return null;
    const seconds = (performance.now() - started) / SECOND;
    deps.metrics.loads.inc({ reason: options.reason, outcome: "loaded" });
    deps.metrics.loadSeconds.observe(seconds);
    log.info({ epoch, requests, seconds }, "sale loaded");
    return epoch;
  } catch (error) {
    deps.metrics.loads.inc({ reason: options.reason, outcome: "failed" });
    throw error;
  } finally {
    // Also when it failed: the next one need not wait for the lease to run out.
    await endLease(deps.db, saleId, epoch).catch(() => {});
  }
}

/** Brings all requests of the sale, page by page; null where another load has overtaken this one. */
async function loadRequests(deps: LoadDeps, saleId: string, epoch: number, lease: Lease): Promise<number | null> {
  const read = (after: string | null) => {
    const reading = readLoadRows(deps.reads, saleId, epoch, after, ROWS_AT_ONCE);
    // Whoever waits for it hears of it; it may fail while nobody does yet.
    reading.catch(() => {});
    return reading;
  };
  let count = 0;
  let next = read(null);
  for (;;) {
    const rows = await next;
    const isLast = rows.length < ROWS_AT_ONCE;
    // The next page is read while this one is brought.
    if (!isLast) next = read(rows.at(-1)?.requestId ?? null);
    for (const chunk of inSlices(rows, LOAD_CHUNK)) {
      if (!isOk(await loadChunk(deps.redis, saleId, epoch, chunk.map(asLoadRequest)))) return null;
      if (drilling) await failpoint("load.after_chunk");
      if (!(await lease.keep())) return null;
    }
    const undecided = rows.filter((row) => row.outcome === null && !row.parked).map((row) => row.requestId);
    for (const some of inSlices(undecided, CHANGED_AT_ONCE)) {
      await makeDue(deps.db, saleId, some);
      if (!(await lease.keep())) return null;
    }
    count += rows.length;
    if (isLast) return count;
  }
}

interface Lease {
  /** Extends it, once a second and however slow a store is; false where another load has taken over. */
  keep(): Promise<boolean>;
}

function holdLease({ db }: LoadDeps, saleId: string, epoch: number): Lease {
  let extendedAt = performance.now();
  return {
    async keep() {
      if (performance.now() - extendedAt < LEASE_MS / 10) return true;
      extendedAt = performance.now();
      return extendLease(db, saleId, epoch, LEASE_MS);
    },
  };
}

function* inSlices<Item>(items: readonly Item[], size: number): Generator<Item[]> {
  for (let at = 0; at < items.length; at += size) yield items.slice(at, at + size);
}

/**
 * A request as it must stand in Redis. One with an event that was not applied stands as it did before the event: it was
 * emitted after the numbers of this epoch were taken, and will give its units back by itself.
 */
function asLoadRequest(row: LoadRow): LoadRequest {
  const before = row.stageBeforeEvent;
  const stage = before !== null && isStage(before) ? before : stageOf(row.outcome, row.orderStatus);
  const { status } = STAGES[stage];
  const undecided = row.parked ? "parked" : "undecided";
  return {
    requestId: row.requestId,
    buyerId: row.buyerId,
    itemId: row.itemId,
    quantity: row.quantity,
    stage,
    reason: before === null ? row.reason : null,
    acceptedAt: row.acceptedAt,
    seq: row.seq,
    stands: status === "SUCCESS" ? "valid_order" : status === "QUEUED" ? undecided : "ended",
  };
}

function clampNegative(
  remaining: ReadonlyMap<string, number>,
  report: (itemId: string, units: number) => void,
): Map<string, number> {
  return new Map(
    [...remaining].map(([itemId, units]) => {
      if (units < 0) report(itemId, units);
      return [itemId, Math.max(0, units)];
    }),
  );
}

function isOk(reply: LoadReply): boolean {
  return reply === "ok";
}
