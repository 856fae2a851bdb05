import { type AuditEntry, type AuditQuery, findAuditPage } from "../db/audit.js";
import type { Database } from "../db/client.js";
import type { Page } from "../domain/model.js";

export interface ReadAuditDeps {
  readonly reads: Database;
}

/** A page of what operators did, the newest first. */
export function listAuditEntries(deps: ReadAuditDeps, query: AuditQuery): Promise<Page<AuditEntry>> {
  return findAuditPage(deps.reads, query);
}
