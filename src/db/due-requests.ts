import type { Database } from "./client.js";

/** An undecided request that the forwarder has to look at. */
export interface DueRequest {
  readonly requestId: string;
  /** how often it was added again because its job was lost */
  readonly attempts: number;
  /** its job was last added in an older epoch: the load may have lost it, which is no fault of the request */
  readonly lostByLoad: boolean;
}

/**
 * Claims the next due requests of a sale by key, by making them due again later, so that any number of forwarders share
 * the work and one that dies leaves nothing behind.
 */
export async function claimDueRequests(
  db: Database,
  saleId: string,
  afterRequestId: string | null,
  limit: number,
  lookAgainMs: number,
): Promise<DueRequest[]> {
  const rows = await db.$queryRaw<DueRequest[]>`
    WITH due AS (
      SELECT "requestId" FROM requests
      WHERE "saleId" = ${saleId} AND outcome IS NULL AND "parkedAt" IS NULL AND "dueAt" <= clock_timestamp()
        AND (${afterRequestId}::uuid IS NULL OR "requestId" > ${afterRequestId}::uuid)
      ORDER BY "requestId" LIMIT ${limit}
      FOR UPDATE SKIP LOCKED
    )
    UPDATE requests r SET "dueAt" = clock_timestamp() + ${lookAgainMs} * interval '1 millisecond'
    FROM due, sales s
    WHERE r."saleId" = ${saleId} AND r."requestId" = due."requestId" AND s.id = ${saleId}
    RETURNING r."requestId", r.attempts, r."queuedEpoch" < s.epoch AS "lostByLoad"`;
  return rows.sort((a, b) => (a.requestId < b.requestId ? -1 : 1));
}

/** Notes that jobs were added again: an attempt each, unless a load had lost them. */
export async function noteRequeued(db: Database, saleId: string, requests: readonly DueRequest[]): Promise<void> {
  if (requests.length === 0) return;
  await db.$executeRaw`
    WITH requeued AS (
      SELECT r."requestId", u.counts
      FROM unnest(
        ${requests.map((row) => row.requestId)}::uuid[], ${requests.map((row) => (row.lostByLoad ? 0 : 1))}::int[]
      ) AS u(id, counts)
      JOIN requests r ON r."saleId" = ${saleId} AND r."requestId" = u.id
      WHERE r.outcome IS NULL
      ORDER BY r."requestId"
      FOR UPDATE OF r SKIP LOCKED
    )
    UPDATE requests r SET attempts = r.attempts + requeued.counts, "queuedEpoch" = s.epoch
    FROM requeued, sales s
    WHERE r."saleId" = ${saleId} AND r."requestId" = requeued."requestId" AND s.id = ${saleId}`;
}

export interface RowState {
  readonly decided: boolean;
  /** undecided, and waiting for an operator */
  readonly parked: boolean;
}

/** How those of the requests stand that have a row, by requestId. */
export async function findRowStates(
  db: Database,
  saleId: string,
  requestIds: readonly string[],
): Promise<Map<string, RowState>> {
  const rows = await db.$queryRaw<(RowState & { requestId: string })[]>`
    SELECT "requestId", outcome IS NOT NULL AS decided, outcome IS NULL AND "parkedAt" IS NOT NULL AS parked
    FROM requests WHERE "saleId" = ${saleId} AND "requestId" = ANY(${requestIds}::uuid[])`;
  return new Map(rows.map(({ requestId, ...state }) => [requestId, state]));
}
