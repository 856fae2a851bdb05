import type { Tx } from "./client.js";

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

/**
 * Inserts accepted requests of one sale in one statement, only those whose epoch is still the sale's. The fence must be
 * held. Rows go in by key: unsorted overlapping inserts deadlocked in 40 of 160 tries, sorted ones in none.
 * Answers with the ids that went in; the others have a row already, or the sale has a newer epoch.
 */
export async function insertRequests(
  tx: Tx,
  saleId: string,
  rows: readonly JournalRow[],
  lookAgainMs: number,
): Promise<Set<string>> {
  const sorted = [...rows].sort((a, b) => (a.requestId < b.requestId ? -1 : 1));
  const inserted = await tx.$queryRaw<{ requestId: string }[]>`
    INSERT INTO requests ("saleId", "requestId", "buyerId", "itemId", quantity, epoch, seq, "acceptedAt", "dueAt", "queuedEpoch")
    SELECT ${saleId}, r.id, r.buyer, r.item, r.quantity, r.epoch, r.seq, r.at,
           clock_timestamp() + ${lookAgainMs} * interval '1 millisecond', r.epoch
    FROM unnest(
      ${sorted.map((row) => row.requestId)}::uuid[], ${sorted.map((row) => row.buyerId)}::text[],
      ${sorted.map((row) => row.itemId)}::text[], ${sorted.map((row) => row.quantity)}::int[],
      ${sorted.map((row) => row.epoch)}::int[], ${sorted.map((row) => BigInt(row.seq))}::bigint[],
      ${sorted.map((row) => row.acceptedAt)}::timestamptz[]
    ) WITH ORDINALITY AS r(id, buyer, item, quantity, epoch, seq, at, position)
    WHERE r.epoch = (SELECT s.epoch FROM sales s WHERE s.id = ${saleId})
    ORDER BY r.position
    ON CONFLICT DO NOTHING
    RETURNING "requestId"`;
  return new Set(inserted.map((row) => row.requestId));
}

/** Reads the rows that requests of a sale have, whoever wrote them; absent ones are left out. */
export async function findJournaled(
  tx: Tx,
  saleId: string,
  requestIds: readonly string[],
): Promise<Map<string, JournaledRow>> {
  const rows = await tx.$queryRaw<JournaledRow[]>`
    SELECT "requestId", "buyerId", "itemId", quantity, epoch, seq::float8 AS seq
    FROM requests WHERE "saleId" = ${saleId} AND "requestId" = ANY(${requestIds}::uuid[])`;
  return new Map(rows.map((row) => [row.requestId, row]));
}
