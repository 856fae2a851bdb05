import { idArray, numberArray, textArray, timeArray } from "./array-text.js";
import type { Statements } from "./client.js";

/** An accepted request on its way into the database. */
export interface JournalRow {
  readonly requestId: string;
  readonly buyerId: string;
  readonly itemId: string;
  readonly quantity: number;
  readonly epoch: number;
  readonly seq: number;
  readonly acceptedAt: Date;
}

/** The row that a request has in the database, and the epoch that its sale is in now. */
export interface JournaledRow {
  readonly requestId: string;
  readonly buyerId: string;
  readonly itemId: string;
  readonly quantity: number;
  readonly epoch: number;
  readonly seq: number;
}

/** What became of a group of rows. */
export interface Inserted {
  /** the epoch that the sale is in, read under its fence; null where there is no such sale */
  readonly epoch: number | null;
  /** the ids of those that went in; the others have a row already, or the sale is in another epoch than they */
  readonly requestIds: ReadonlySet<string>;
}

/**
 * Inserts accepted requests of one sale, all in one statement that takes the sale's fence first: only those whose epoch is
 * still the sale's. Rows go in by key: unsorted overlapping inserts deadlocked in 40 of 160 tries, sorted ones in none.
 *
 * The statement's own snapshot may be older than the fence that it waited for; nothing is read from it. The epoch is read
 * by a function that looks anew behind the fence, and whether a row is there already is asked of the index.
 */
export async function insertRequests(
  tx: Statements,
  saleId: string,
  rows: readonly JournalRow[],
  lookAgainMs: number,
): Promise<Inserted> {
  const sorted = [...rows].sort((a, b) => (a.requestId < b.requestId ? -1 : 1));
  const [result] = await tx.$queryRaw<{ epoch: number | null; ids: string | null }[]>`
    /* prepared: insert_requests */
    WITH sale AS MATERIALIZED (SELECT epoch_under_fence(${saleId}) AS epoch),
    inserted AS (
      INSERT INTO requests
        ("saleId", "requestId", "buyerId", "itemId", quantity, epoch, seq, "acceptedAt", "dueAt", "queuedEpoch")
      SELECT ${saleId}, r.id, r.buyer, r.item, r.quantity, r.epoch, r.seq, r.at,
             clock_timestamp() + ${lookAgainMs} * interval '1 millisecond', r.epoch
      FROM unnest(
        ${idArray(sorted.map((row) => row.requestId))}::uuid[], ${textArray(sorted.map((row) => row.buyerId))}::text[],
        ${textArray(sorted.map((row) => row.itemId))}::text[], ${numberArray(sorted.map((row) => row.quantity))}::int[],
        ${numberArray(sorted.map((row) => row.epoch))}::int[], ${numberArray(sorted.map((row) => row.seq))}::bigint[],
        ${timeArray(sorted.map((row) => row.acceptedAt))}::timestamptz[]
      ) WITH ORDINALITY AS r(id, buyer, item, quantity, epoch, seq, at, position)
      JOIN sale ON r.epoch = sale.epoch
      ORDER BY r.position
      ON CONFLICT DO NOTHING
      RETURNING "requestId"
    )
    SELECT (SELECT epoch FROM sale) AS epoch, string_agg("requestId"::text, ',') AS ids FROM inserted`;
  return { epoch: result?.epoch ?? null, requestIds: new Set(result?.ids?.split(",") ?? []) };
}

/** Reads the rows that requests of a sale have, whoever wrote them; absent ones are left out. */
export async function findJournaled(
  tx: Statements,
  saleId: string,
  requestIds: readonly string[],
): Promise<Map<string, JournaledRow>> {
  const rows = await tx.$queryRaw<JournaledRow[]>`
    SELECT "requestId", "buyerId", "itemId", quantity, epoch, seq::float8 AS seq
    FROM requests WHERE "saleId" = ${saleId} AND "requestId" = ANY(${idArray(requestIds)}::uuid[])`;
  return new Map(rows.map((row) => [row.requestId, row]));
}
