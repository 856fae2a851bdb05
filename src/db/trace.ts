import { orderIdOf } from "../domain/ids.js";
import type { RequestKey } from "../domain/model.js";
import type { AuditEntry } from "./audit.js";
import type { Tx } from "./client.js";

/** Of each kind of row the first so many: whoever reports a payment again and again must not fill a page. */
export const ROWS_AT_MOST = 200;

export type TraceRows = Awaited<ReturnType<typeof readTraceRows>>;

/** All that the database holds of one request, its sale's row with it. Reads only; run it in a snapshot. */
export async function readTraceRows(tx: Tx, { saleId, requestId }: RequestKey) {
  const key = { where: { saleId_requestId: { saleId, requestId } } };
  const oldestFirst = { where: { saleId, requestId }, orderBy: { id: "asc" }, take: ROWS_AT_MOST } as const;
  const payments = await tx.payment.findMany({
    where: { saleId, requestId },
    orderBy: [{ createdAt: "asc" }, { paymentRef: "asc" }],
    take: ROWS_AT_MOST,
  });
  return {
    sale: await tx.sale.findUnique({ where: { id: saleId }, select: { epoch: true, closesAt: true } }),
    request: await tx.request.findUnique(key),
    order: await tx.order.findUnique(key),
    movements: await tx.stockMovement.findMany(oldestFirst),
    events: await tx.requestEvent.findMany(oldestFirst),
    payments,
    deadLetters: await tx.deadLetter.findMany(oldestFirst),
    audit: await findAuditOf(
      tx,
      { saleId, requestId },
      payments.map(({ paymentRef }) => paymentRef),
    ),
  };
}

/** The lines of the audit log that name the request, its order, or a payment for it. */
function findAuditOf(tx: Tx, { saleId, requestId }: RequestKey, paymentRefs: readonly string[]): Promise<AuditEntry[]> {
  return tx.$queryRaw<AuditEntry[]>`
    SELECT id, "saleId", actor, action, reason, details, "createdAt" FROM audit_entries
    WHERE "saleId" = ${saleId}
      AND (details->>'requestId' = ${requestId} OR details->>'orderId' = ${orderIdOf(saleId, requestId)}
           OR details->>'paymentRef' = ANY(${[...paymentRefs]}::text[]))
    ORDER BY id LIMIT ${ROWS_AT_MOST}`;
}
