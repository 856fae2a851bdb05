import type { Tx } from "./client.js";

export interface AuditLine {
  readonly saleId: string;
  /** the operator, as the token names him */
  readonly actor: string;
  readonly action: string;
  readonly reason?: string | undefined;
}

/** Notes who did what, in the transaction that does it. */
export async function insertAudit(tx: Tx, line: AuditLine): Promise<void> {
  await tx.auditEntry.create({
    data: { saleId: line.saleId, actor: line.actor, action: line.action, reason: line.reason ?? null },
  });
}
