import type { ReservationReason } from "../domain/stages.js";
import type { Database } from "./client.js";

/** Something that happened to a request and that Redis has yet to hear. */
export interface PendingEvent {
  readonly id: string;
  readonly requestId: string;
  readonly epoch: number;
  readonly toStage: string;
  readonly reason: ReservationReason | null;
  readonly units: number;
}

/** Sales that have events to be carried to Redis. */
export async function findSalesWithEvents(db: Database): Promise<string[]> {
  const rows = await db.$queryRaw<{ saleId: string }[]>`
    SELECT DISTINCT "saleId" FROM request_events WHERE "appliedAt" IS NULL`;
  return rows.map((row) => row.saleId);
}

/** The oldest events of a sale that were not applied. */
export async function findPendingEvents(db: Database, saleId: string, limit: number): Promise<PendingEvent[]> {
  return db.$queryRaw<PendingEvent[]>`
    SELECT id::text AS id, "requestId", epoch, "toStage", reason::text AS reason, units
    FROM request_events
    WHERE "saleId" = ${saleId} AND "appliedAt" IS NULL
    ORDER BY epoch, id
    LIMIT ${limit}`;
}

/**
 * Marks some events of before the present epoch absorbed, whatever they say, and answers with how many: the load that began
 * the epoch has their units in its numbers and their stages in its rows, and so has every later one.
 */
export async function absorbOlderEvents(db: Database, saleId: string, limit: number): Promise<number> {
  return db.$executeRaw`
    UPDATE request_events SET "appliedAt" = now(), absorbed = true
    WHERE "saleId" = ${saleId} AND id = ANY(ARRAY(
      SELECT id FROM request_events
      WHERE "saleId" = ${saleId} AND "appliedAt" IS NULL AND epoch < (SELECT epoch FROM sales WHERE id = ${saleId})
      ORDER BY epoch, id LIMIT ${limit} FOR UPDATE SKIP LOCKED
    ))`;
}

/** Marks events as applied, or as absorbed by a load; one that is marked already stays as it is. */
export async function markEvents(
  db: Database,
  saleId: string,
  ids: readonly string[],
  how: "applied" | "absorbed",
): Promise<void> {
  if (ids.length === 0) return;
  await db.$executeRaw`
    WITH marked AS (
      SELECT id FROM request_events
      WHERE "saleId" = ${saleId} AND id = ANY(${ids.map(BigInt)}::bigint[]) AND "appliedAt" IS NULL
      ORDER BY id FOR UPDATE
    )
    UPDATE request_events e SET "appliedAt" = now(), absorbed = ${how === "absorbed"}
    FROM marked WHERE e."saleId" = ${saleId} AND e.id = marked.id`;
}
