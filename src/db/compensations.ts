import type { Tx } from "./client.js";
import type { PendingEvent } from "./request-events.js";

/**
 * Decides a request FAILED if it is undecided, with the event that gives its units back; null where somebody else has decided
 * it. The transaction holds the fence shared and has read the epoch under it.
 */
export async function failRequest(
  tx: Tx,
  saleId: string,
  requestId: string,
  epoch: number,
): Promise<PendingEvent | null> {
  const rows = await tx.$queryRaw<{ id: string; units: number }[]>`
    WITH failed AS (
      UPDATE requests SET outcome = 'FAILED', reason = 'PROCESSING_FAILED', "decidedAt" = now()
      WHERE "saleId" = ${saleId} AND "requestId" = ${requestId}::uuid AND outcome IS NULL
      RETURNING quantity
    )
    INSERT INTO request_events ("saleId", "requestId", epoch, "fromStage", "toStage", reason, units)
    SELECT ${saleId}, ${requestId}::uuid, ${epoch}, 'QUEUED', 'FAILED', 'PROCESSING_FAILED', quantity FROM failed
    RETURNING id::text AS id, units`;
  const [event] = rows;
  return event ? { ...event, requestId, epoch, toStage: "FAILED", reason: "PROCESSING_FAILED" } : null;
}
