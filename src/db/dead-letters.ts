import type { Page } from "../domain/model.js";
import type { Database, Tx } from "./client.js";
import { pageOf } from "./page.js";

export const DEAD_LETTER_STATUSES = ["OPEN", "REPLAYED", "COMPENSATED", "DISCARDED"] as const;
export type DeadLetterStatus = (typeof DEAD_LETTER_STATUSES)[number];

/** Where a request came to its end. */
export const DEAD_LETTER_STAGES = ["write", "job", "stalled", "lost"] as const;
export type DeadLetterStage = (typeof DEAD_LETTER_STAGES)[number];

/** A request that automatic handling has given up. */
export interface DeadLetter {
  readonly saleId: string;
  readonly id: bigint;
  readonly requestId: string;
  readonly stage: string;
  readonly lastError: string;
  /** how often its job was run, or added again */
  readonly attempts: number;
  readonly status: DeadLetterStatus;
  readonly createdAt: Date;
  readonly resolvedAt: Date | null;
}

export type NewDeadLetter = Pick<DeadLetter, "requestId" | "lastError" | "attempts"> & {
  readonly stage: DeadLetterStage;
};

/**
 * Parks those of the requests that are undecided and not parked, each with a dead letter; answers with their ids. A request
 * that was decided meanwhile needs none, and one that somebody holds is being decided, or looked at next time.
 */
export async function openDeadLetters(tx: Tx, saleId: string, letters: readonly NewDeadLetter[]): Promise<string[]> {
  if (letters.length === 0) return [];
  const rows = await tx.$queryRaw<{ requestId: string }[]>`
    WITH given AS (
      SELECT * FROM unnest(
        ${letters.map((row) => row.requestId)}::uuid[], ${letters.map((row) => row.stage)}::text[],
        ${letters.map((row) => storable(row.lastError))}::text[], ${letters.map((row) => row.attempts)}::int[]
      ) AS g(id, stage, error, attempts)
    ), held AS (
      SELECT r."requestId" FROM requests r JOIN given g ON g.id = r."requestId"
      WHERE r."saleId" = ${saleId} AND r.outcome IS NULL AND r."parkedAt" IS NULL
      ORDER BY r."requestId" FOR UPDATE OF r SKIP LOCKED
    ), parked AS (
      UPDATE requests r SET "parkedAt" = clock_timestamp(), "lastError" = g.error
      FROM held JOIN given g ON g.id = held."requestId"
      WHERE r."saleId" = ${saleId} AND r."requestId" = held."requestId"
        AND r.outcome IS NULL AND r."parkedAt" IS NULL
      RETURNING r."requestId", g.stage, g.error, g.attempts
    )
    INSERT INTO dead_letters ("saleId", "requestId", stage, "lastError", attempts)
    SELECT ${saleId}, "requestId", stage, error, attempts FROM parked
    ON CONFLICT DO NOTHING
    RETURNING "requestId"`;
  return rows.map((row) => row.requestId);
}

/** An error's text as the column can hold it: PostgreSQL refuses NUL. */
function storable(text: string): string {
  return text.replaceAll("\0", " ").toWellFormed().slice(0, 1_000);
}

/** A dead letter, or null. */
export async function findDeadLetter(db: Database, saleId: string, id: bigint): Promise<DeadLetter | null> {
  return db.deadLetter.findUnique({ where: { saleId_id: { saleId, id } } });
}

/** Whether the request of a dead letter, which the transaction holds, has an outcome. */
export async function isDecided(tx: Tx, { saleId, requestId }: DeadLetter): Promise<boolean> {
  const row = await tx.request.findUnique({
    where: { saleId_requestId: { saleId, requestId } },
    select: { outcome: true },
  });
  return row !== null && row.outcome !== null;
}

/** Holds a dead letter for this transaction, its request first; null where there is none. */
export async function lockDeadLetter(tx: Tx, saleId: string, id: bigint): Promise<DeadLetter | null> {
  await tx.$executeRaw`
    SELECT 1 FROM requests r JOIN dead_letters d ON d."saleId" = r."saleId" AND d."requestId" = r."requestId"
    WHERE d."saleId" = ${saleId} AND d.id = ${id} FOR UPDATE OF r`;
  const rows = await tx.$queryRaw<DeadLetter[]>`
    SELECT "saleId", id, "requestId", stage, "lastError", attempts, status::text AS status, "createdAt", "resolvedAt"
    FROM dead_letters WHERE "saleId" = ${saleId} AND id = ${id} FOR UPDATE`;
  return rows[0] ?? null;
}

/** Ends an open dead letter, and the parking of its request. */
export async function resolveDeadLetter(
  tx: Tx,
  { saleId, id, requestId }: DeadLetter,
  status: Exclude<DeadLetterStatus, "OPEN">,
): Promise<void> {
  await tx.$executeRaw`
    UPDATE requests SET "parkedAt" = NULL WHERE "saleId" = ${saleId} AND "requestId" = ${requestId}::uuid`;
  await tx.$executeRaw`
    UPDATE dead_letters SET status = ${status}::"DeadLetterStatus", "resolvedAt" = clock_timestamp()
    WHERE "saleId" = ${saleId} AND id = ${id} AND status = 'OPEN'`;
}

/**
 * Has a request looked at by the forwarder at once, as if it had never been tried: its job counts as one that a load lost,
 * which is added again whatever is remembered of it.
 */
export async function makeDueAnew(tx: Tx, saleId: string, requestId: string): Promise<void> {
  await tx.$executeRaw`
    UPDATE requests SET "dueAt" = clock_timestamp(), attempts = 0, "queuedEpoch" = -1
    WHERE "saleId" = ${saleId} AND "requestId" = ${requestId}::uuid AND outcome IS NULL`;
}

/** Open dead letters of any sale that were written before so many milliseconds, the oldest first. */
export async function findOldDeadLetters(db: Database, olderThanMs: number, limit: number): Promise<DeadLetter[]> {
  return db.$queryRaw<DeadLetter[]>`
    SELECT "saleId", id, "requestId", stage, "lastError", attempts, status::text AS status, "createdAt", "resolvedAt"
    FROM dead_letters
    WHERE status = 'OPEN' AND "createdAt" <= clock_timestamp() - ${olderThanMs} * interval '1 millisecond'
    ORDER BY "createdAt" LIMIT ${limit}`;
}

export interface DeadLetterQuery {
  /** null: of all sales */
  readonly saleId: string | null;
  readonly status: DeadLetterStatus | null;
  readonly first: number;
  /** the last one of the page before */
  readonly after: { readonly createdAt: Date; readonly id: bigint } | null;
}

/** A page of dead letters, the newest first. */
export async function findDeadLetterPage(db: Database, query: DeadLetterQuery): Promise<Page<DeadLetter>> {
  const { saleId, status, first, after } = query;
  const rows = await db.deadLetter.findMany({
    where: {
      ...(saleId !== null && { saleId }),
      ...(status && { status }),
      ...(after && {
        OR: [{ createdAt: { lt: after.createdAt } }, { createdAt: after.createdAt, id: { lt: after.id } }],
      }),
    },
    orderBy: [{ createdAt: "desc" }, { id: "desc" }],
    take: first + 1,
  });
  return pageOf(rows, first);
}
