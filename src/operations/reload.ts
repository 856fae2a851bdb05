import { insertAudit } from "../db/audit.js";
import { findSales } from "../db/sales.js";
import { conflict, notFound } from "../domain/errors.js";
import { isId } from "../domain/ids.js";
import type { Sale } from "../domain/model.js";
import { checkReason } from "./check-input.js";
import { type LoadDeps, loadSale } from "./load.js";
import type { SaleCache } from "./sale-cache.js";

export interface ReloadDeps extends LoadDeps {
  readonly sales: SaleCache;
}

export interface ReloadCommand {
  readonly saleId: string;
  /** why, for the audit log */
  readonly reason: string;
  /** the operator */
  readonly actor: string;
}

/**
 * Loads a sale into Redis again from the database's truth, on an operator's word: what repairs two stores that disagree.
 * Buyers get SERVICE_UNAVAILABLE for the moment that it takes. Safe at any time; a repeat loads once more.
 *
 * @throws SluiceError NOT_FOUND, BAD_USER_INPUT, CONFLICT (a draft, or closed for more than a week), SERVICE_UNAVAILABLE;
 *   RedisUnavailableError, a database error
 */
export async function reloadSale(deps: ReloadDeps, { saleId, reason, actor }: ReloadCommand): Promise<Sale> {
  checkReason(reason);
  const [sale] = isId(saleId) ? await findSales(deps.db, [saleId]) : [];
  if (!sale) throw notFound("There is no such sale.");
  const outcome = await loadSale(deps, saleId, {
    reason: "asked",
    mendsEpoch: sale.epoch,
    alongside: (tx) => insertAudit(tx, { saleId, actor, action: "reloadSale", reason }),
  });
  if (outcome.kind === "not_loadable") {
    throw conflict("A draft is loaded when it is opened, and a sale that closed more than a week ago not any more.");
  }
  return (await deps.sales.read(saleId)) ?? sale;
}
