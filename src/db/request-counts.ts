import type { Database } from "./client.js";

/** How far the accepted requests of a sale have come. */
export interface RequestCounts {
  readonly accepted: number;
  readonly undecided: number;
  readonly ordered: number;
}

/** Counts the journaled requests of a sale. */
export async function countRequests(db: Database, saleId: string): Promise<RequestCounts> {
  const rows = await db.$queryRaw<RequestCounts[]>`
    SELECT count(*)::int AS accepted, count(*) FILTER (WHERE outcome IS NULL)::int AS undecided,
           count(*) FILTER (WHERE outcome = 'ORDERED')::int AS ordered
    FROM requests WHERE "saleId" = ${saleId}`;
  return rows[0] ?? { accepted: 0, undecided: 0, ordered: 0 };
}
