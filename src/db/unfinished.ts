import type { Tx } from "./client.js";

/** What of a sale has no end yet; ages in seconds, 0 where there is nothing. */
export interface UnfinishedWork {
  readonly undecided: number;
  /** of the undecided ones that are in line: parked ones wait for an operator */
  readonly oldestUndecidedSeconds: number;
  /** undecided, in line, and due before now */
  readonly overdue: number;
  readonly parked: number;
  readonly unappliedEvents: number;
  readonly oldestUnappliedSeconds: number;
}

/**
 * Counts what has no end yet in sales, all in one statement: saleId → work. It reads only the partial indexes over undecided
 * requests and unapplied events, and the rows they lead to: as many as wait, however large the tables are.
 */
export async function measureUnfinishedWork(
  db: Pick<Tx, "$queryRaw">,
  saleIds: readonly string[],
): Promise<Map<string, UnfinishedWork>> {
  if (saleIds.length === 0) return new Map();
  const rows = await db.$queryRaw<(UnfinishedWork & { saleId: string })[]>`
    SELECT s.id AS "saleId", r.*, e.*
    FROM unnest(${[...saleIds]}::text[]) AS s(id)
    CROSS JOIN LATERAL (
      SELECT count(*)::int AS undecided,
             coalesce(greatest(0, extract(epoch FROM clock_timestamp() - min("acceptedAt") FILTER (WHERE "parkedAt" IS NULL))), 0)::float8
               AS "oldestUndecidedSeconds",
             (count(*) FILTER (WHERE "parkedAt" IS NULL AND "dueAt" <= clock_timestamp()))::int AS overdue,
             count("parkedAt")::int AS parked
      FROM requests WHERE "saleId" = s.id AND outcome IS NULL
    ) r
    CROSS JOIN LATERAL (
      SELECT count(*)::int AS "unappliedEvents",
             coalesce(greatest(0, extract(epoch FROM clock_timestamp() - min("createdAt"))), 0)::float8
               AS "oldestUnappliedSeconds"
      FROM request_events WHERE "saleId" = s.id AND "appliedAt" IS NULL
    ) e`;
  return new Map(rows.map(({ saleId, ...work }) => [saleId, work]));
}

/** What waits for money, or for its money back; ages in seconds, 0 where there is nothing. */
export interface UnpaidWork {
  readonly unpaid: number;
  /** how long the oldest unpaid order has outlived its window */
  readonly overdueSeconds: number;
}

/** Counts the unpaid orders of sales, from their partial index alone: saleId → work. */
export async function measureUnpaidOrders(
  db: Pick<Tx, "$queryRaw">,
  saleIds: readonly string[],
): Promise<Map<string, UnpaidWork>> {
  const rows = await db.$queryRaw<(UnpaidWork & { saleId: string })[]>`
    SELECT "saleId", count(*)::int AS unpaid,
           greatest(0, extract(epoch FROM clock_timestamp() - min("payBy")))::float8 AS "overdueSeconds"
    FROM orders WHERE status = 'PENDING_PAYMENT' GROUP BY "saleId"`;
  const found = new Map(rows.map(({ saleId, ...work }) => [saleId, work]));
  return new Map(saleIds.map((saleId) => [saleId, found.get(saleId) ?? { unpaid: 0, overdueSeconds: 0 }]));
}

/** Counts the payments that are to be given back. */
export async function measureDueRefunds(
  db: Pick<Tx, "$queryRaw">,
): Promise<{ readonly count: number; readonly oldestSeconds: number }> {
  const rows = await db.$queryRaw<{ count: number; oldestSeconds: number }[]>`
    SELECT count(*)::int AS count,
           coalesce(greatest(0, extract(epoch FROM clock_timestamp() - min("refundDueAt"))), 0)::float8 AS "oldestSeconds"
    FROM payments WHERE "refundDueAt" IS NOT NULL AND "refundedAt" IS NULL`;
  return rows[0] ?? { count: 0, oldestSeconds: 0 };
}
