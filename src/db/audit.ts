import type { Page } from "../domain/model.js";
import type { Database, Tx } from "./client.js";
import { pageOf } from "./page.js";

export interface AuditLine {
  /** null where it is about no sale of ours */
  readonly saleId: string | null;
  /** the operator, as the token names him */
  readonly actor: string;
  readonly action: string;
  readonly reason?: string | undefined;
  /** what it was done to, and how */
  readonly details?: Readonly<Record<string, string | number | boolean>>;
}

/** A line as it stands in the log. */
export interface AuditEntry extends Omit<AuditLine, "reason" | "details"> {
  readonly id: bigint;
  readonly reason: string | null;
  readonly details: unknown;
  readonly createdAt: Date;
}

/** Notes who did what, in the transaction that does it. */
export async function insertAudit(tx: Tx, line: AuditLine): Promise<void> {
  const { saleId, actor, action, reason = null, details = {} } = line;
  await tx.auditEntry.create({ data: { saleId, actor, action, reason, details } });
}

export interface AuditQuery {
  /** null: of all sales */
  readonly saleId: string | null;
  readonly first: number;
  /** the last line of the page before */
  readonly after: { readonly createdAt: Date; readonly id: bigint } | null;
}

/** A page of the log, the newest line first. */
export async function findAuditPage(db: Database, { saleId, first, after }: AuditQuery): Promise<Page<AuditEntry>> {
  const rows = await db.auditEntry.findMany({
    where: {
      ...(saleId !== null && { saleId }),
      ...(after && {
        OR: [{ createdAt: { lt: after.createdAt } }, { createdAt: after.createdAt, id: { lt: after.id } }],
      }),
    },
    orderBy: [{ createdAt: "desc" }, { id: "desc" }],
    take: first + 1,
  });
  return pageOf(rows, first);
}

/** Whether a stock adjustment of that name is in the log. */
export async function hasAudit(db: Database | Tx, saleId: string, adjustment: string): Promise<boolean> {
  const found = await db.auditEntry.findFirst({
    where: { saleId, details: { path: ["adjustment"], equals: adjustment } },
    select: { id: true },
  });
  return found !== null;
}
