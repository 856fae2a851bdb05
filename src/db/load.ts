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
 * In one statement, so of one moment: how many units of each item nobody was promised (may be negative where the two
 * stores had come apart); events that were not applied are marked absorbed, since these numbers have them; and undecided
 * requests become due at once, since the queue may be gone too. Rows that a writer holds are left alone: it is deciding them.
 */
export async function absorbIntoEpoch(tx: Tx, saleId: string): Promise<Map<string, number>> {
  const rows = await tx.$queryRaw<{ id: string; remaining: number }[]>`
    WITH unapplied AS (
      SELECT id FROM request_events WHERE "saleId" = ${saleId} AND "appliedAt" IS NULL ORDER BY id FOR UPDATE
    ), absorbed AS (
      UPDATE request_events e SET "appliedAt" = now(), absorbed = true
      FROM unapplied WHERE e."saleId" = ${saleId} AND e.id = unapplied.id
    ), due AS (
      SELECT "requestId" FROM requests
      WHERE "saleId" = ${saleId} AND outcome IS NULL AND "parkedAt" IS NULL
      ORDER BY "requestId" FOR UPDATE SKIP LOCKED
    ), made_due AS (
      UPDATE requests r SET "dueAt" = now() FROM due
      WHERE r."saleId" = ${saleId} AND r."requestId" = due."requestId"
    )
    SELECT i.id, (i.available - coalesce(sum(r.quantity), 0))::int AS remaining
    FROM sale_items i
    LEFT JOIN requests r ON r."saleId" = i."saleId" AND r."itemId" = i.id AND r.outcome IS NULL
    WHERE i."saleId" = ${saleId}
    GROUP BY i.id, i.available`;
  return new Map(rows.map((row) => [row.id, row.remaining]));
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
  /** the stage before the oldest event that was not applied, or null where there is none */
  readonly stageBeforeEvent: string | null;
}

/** The next requests of a sale by key, read in one statement, so that request, order and event are of one moment. */
export async function readLoadRows(
  db: Database,
  saleId: string,
  afterRequestId: string | null,
  limit: number,
): Promise<LoadRow[]> {
  return db.$queryRaw<LoadRow[]>`
    SELECT r."requestId", r."buyerId", r."itemId", r.quantity, r.seq::float8 AS seq, r."acceptedAt",
           r.outcome::text AS outcome, r.reason::text AS reason, r."parkedAt" IS NOT NULL AS parked,
           o.status::text AS "orderStatus", e."fromStage" AS "stageBeforeEvent"
    FROM requests r
    LEFT JOIN orders o ON o."saleId" = r."saleId" AND o."requestId" = r."requestId"
    LEFT JOIN LATERAL (
      SELECT "fromStage" FROM request_events
      WHERE "saleId" = r."saleId" AND "requestId" = r."requestId" AND "appliedAt" IS NULL
      ORDER BY id LIMIT 1
    ) e ON true
    WHERE r."saleId" = ${saleId} AND (${afterRequestId}::uuid IS NULL OR r."requestId" > ${afterRequestId}::uuid)
    ORDER BY r."requestId"
    LIMIT ${limit}`;
}

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
