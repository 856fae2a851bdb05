import type { SaleState } from "../domain/sale-state.js";
import type { ReservationReason } from "../domain/stages.js";
import type { Database, Tx } from "./client.js";

/** What step 1 of a load found, all of one moment. */
export interface LoadStart {
  readonly epoch: number;
  readonly state: SaleState;
  readonly stateVersion: number;
  readonly opensAt: Date;
  readonly closesAt: Date;
  readonly maxPerBuyer: number;
}

/** The epoch that a sale is in, and whether a load of it is under way; null where there is no such sale. */
export async function readLease(db: Database, saleId: string): Promise<{ epoch: number; taken: boolean } | null> {
  const rows = await db.$queryRaw<{ epoch: number; taken: boolean }[]>`
    SELECT epoch, coalesce("loadingUntil" > clock_timestamp(), false) AS taken FROM sales WHERE id = ${saleId}`;
  return rows[0] ?? null;
}

/**
 * Takes the lease of a load and moves the sale into the epoch after `fromEpoch`, or answers null while another load holds
 * one, or where one has come between. The exclusive fence must be held. The epoch's change numbers must all be above those that were seen of the last one,
 * also if that one ran past its million: so the epoch may grow by more than one.
 */
export async function beginEpoch(
  tx: Tx,
  saleId: string,
  fromEpoch: number,
  leaseMs: number,
  seqSeen: number,
): Promise<LoadStart | null> {
  const rows = await tx.$queryRaw<LoadStart[]>`
    UPDATE sales SET
      "seqSeen" = greatest("seqSeen", ${BigInt(seqSeen)}::bigint),
      epoch = greatest(epoch + 1, ceil((greatest("seqSeen", ${BigInt(seqSeen)}::bigint) + 200000) / 1000000.0)::int),
      "loadingUntil" = clock_timestamp() + ${leaseMs} * interval '1 millisecond'
    WHERE id = ${saleId} AND epoch = ${fromEpoch}
      AND ("loadingUntil" IS NULL OR "loadingUntil" <= clock_timestamp())
    RETURNING epoch, state::text AS state, "stateVersion", "opensAt", "closesAt", "maxPerBuyer"`;
  return rows[0] ?? null;
}

/**
 * In one statement, so of one moment: how many units of each item nobody was promised. May be negative where the two stores
 * had come apart. The exclusive fence must be held.
 *
 * Events that were not applied are in these numbers: by their epoch, which is older than the one that begins, they count as
 * absorbed from now on, and the relay marks them so, some at a time. While Redis is away there may come any number of them,
 * and marking 100,000 in here took longer than a statement may, so that the sale could never be loaded again.
 */
export async function readUnpromisedUnits(tx: Tx, saleId: string): Promise<Map<string, number>> {
  const rows = await tx.$queryRaw<{ id: string; units: number }[]>`
    WITH promised AS (
      SELECT "itemId", sum(quantity) AS units FROM requests WHERE "saleId" = ${saleId} AND outcome IS NULL GROUP BY "itemId"
    )
    SELECT i.id, (i.available - coalesce(p.units, 0))::int AS units
    FROM sale_items i LEFT JOIN promised p ON p."itemId" = i.id
    WHERE i."saleId" = ${saleId}`;
  return new Map(rows.map((row) => [row.id, row.units]));
}

/**
 * Makes undecided requests due at once: the queue may be gone with the rest of Redis. Rows that a writer holds are left alone,
 * it is deciding them.
 */
export async function makeDue(db: Database, saleId: string, requestIds: readonly string[]): Promise<void> {
  // As an array and not as a table to be joined: that was read with all requests of the sale, for every thousand anew.
  await db.$executeRaw`
    WITH due AS (
      SELECT "requestId" FROM requests
      WHERE "saleId" = ${saleId} AND "requestId" = ANY(${requestIds}::uuid[]) AND outcome IS NULL AND "parkedAt" IS NULL
        AND "dueAt" > now()
      ORDER BY "requestId" FOR UPDATE SKIP LOCKED
    )
    UPDATE requests SET "dueAt" = now()
    WHERE "saleId" = ${saleId} AND "requestId" = ANY(ARRAY(SELECT "requestId" FROM due))`;
}

/** A request as a load reads it: with its order's status, and with the first event of it that Redis has yet to hear. */
export interface LoadRow {
  readonly requestId: string;
  readonly buyerId: string;
  readonly itemId: string;
  readonly quantity: number;
  readonly seq: number;
  readonly acceptedAt: Date;
  readonly outcome: "ORDERED" | "SOLD_OUT" | "FAILED" | null;
  readonly reason: ReservationReason | null;
  readonly parked: boolean;
  readonly orderStatus: "PENDING_PAYMENT" | "PAID" | "CANCELLED" | "EXPIRED" | "REFUND_PENDING" | "REFUNDED" | null;
  /** the stage before the oldest event of this epoch that was not applied, or null where there is none */
  readonly stageBeforeEvent: string | null;
}

/**
 * The next requests of a sale by key, read in one statement, so that request, order and event are of one moment.
 *
 * Order and event are looked up for each row of the page, and in no other way: left to itself the planner merges the page with
 * all orders of the sale, or sorts them, for every page anew (100,000 requests took 40 seconds, in two thirds of a second a
 * page where the tables had not been analyzed yet).
 */
export async function readLoadRows(
  db: Database,
  saleId: string,
  epoch: number,
  afterRequestId: string | null,
  limit: number,
): Promise<LoadRow[]> {
  return db.$queryRaw<LoadRow[]>`
    WITH page AS MATERIALIZED (
      SELECT * FROM requests
      WHERE "saleId" = ${saleId} AND "requestId" >= ${afterRequestId ?? LOWEST_ID}::uuid
        AND "requestId" IS DISTINCT FROM ${afterRequestId}::uuid
      ORDER BY "requestId" LIMIT ${limit}
    )
    SELECT r."requestId", r."buyerId", r."itemId", r.quantity, r.seq::float8 AS seq, r."acceptedAt",
           r.outcome::text AS outcome, coalesce(o.reason, r.reason)::text AS reason,
           r."parkedAt" IS NOT NULL AS parked, o.status::text AS "orderStatus", e.stage AS "stageBeforeEvent"
    FROM page r
    LEFT JOIN LATERAL (
      SELECT reason, status FROM orders WHERE "saleId" = r."saleId" AND "requestId" = r."requestId" LIMIT 1
    ) o ON true
    LEFT JOIN LATERAL (
      SELECT (array_agg("fromStage" ORDER BY id))[1] AS stage FROM request_events
      WHERE "saleId" = r."saleId" AND "requestId" = r."requestId" AND "appliedAt" IS NULL
        AND epoch >= ${epoch}
    ) e ON true
    ORDER BY r."requestId"`;
}

const LOWEST_ID = "00000000-0000-0000-0000-000000000000";

/** Keeps the lease of a load that is getting on. False: another load has taken over. */
export async function extendLease(db: Database, saleId: string, epoch: number, leaseMs: number): Promise<boolean> {
  const rows = await db.$executeRaw`
    UPDATE sales SET "loadingUntil" = clock_timestamp() + ${leaseMs} * interval '1 millisecond'
    WHERE id = ${saleId} AND epoch = ${epoch}`;
  return rows === 1;
}

/** Gives the lease back. */
export async function endLease(db: Database, saleId: string, epoch: number): Promise<void> {
  await db.$executeRaw`UPDATE sales SET "loadingUntil" = NULL WHERE id = ${saleId} AND epoch = ${epoch}`;
}
