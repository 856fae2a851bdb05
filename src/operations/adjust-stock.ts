import { randomUUID } from "node:crypto";
import { hasAudit, insertAudit } from "../db/audit.js";
import type { Database, Tx } from "../db/client.js";
import { isContention, isDatabaseUnavailable } from "../db/errors.js";
import { takeFenceExclusive, takeFenceShared } from "../db/fence.js";
import { findSales } from "../db/sales.js";
import { adjustItem } from "../db/stock.js";
import { inTransaction } from "../db/transaction.js";
import { badUserInput, conflict, notFound, serviceUnavailable } from "../domain/errors.js";
import { isId } from "../domain/ids.js";
import type { Sale } from "../domain/model.js";
import { RedisUnavailableError } from "../redis/errors.js";
import { checkReason } from "./check-input.js";
import { isLoadable, type LoadDeps, loadSale } from "./load.js";
import type { Loads } from "./loads.js";
import type { SaleCache } from "./sale-cache.js";

export interface AdjustStockDeps extends LoadDeps {
  readonly loads: Loads;
  readonly sales: SaleCache;
}

export interface StockAdjustment {
  readonly saleId: string;
  readonly itemId: string;
  /** units put on sale, or taken off it where negative */
  readonly delta: number;
  /** why, for the audit log */
  readonly reason: string;
  /** the operator */
  readonly actor: string;
}

const INT_MAX = 2_147_483_647;

/**
 * Puts units of an item on sale, or takes some off it: never those that somebody was promised, has ordered, or bought. It is
 * done inside a load of the sale, whose beginning no promise can cross; a sale that Redis doesn't hold is changed in the
 * database alone. When this returns it is in force; or, where Redis is away, as soon as the sale is loaded.
 *
 * Not idempotent: a repeat adjusts again. @throws SluiceError NOT_FOUND, BAD_USER_INPUT, CONFLICT (units are promised);
 *   SERVICE_UNAVAILABLE, which says whether it may have been done
 */
export async function adjustStock(deps: AdjustStockDeps, adjustment: StockAdjustment): Promise<Sale> {
  const { saleId, itemId, delta } = adjustment;
  checkReason(adjustment.reason);
  if (!Number.isInteger(delta) || delta === 0 || Math.abs(delta) > INT_MAX) {
    throw badUserInput("delta must be a whole number, and not 0");
  }
  if (!isId(saleId)) throw notFound("There is no such sale.");
  if (!isId(itemId)) throw notFound("There is no such item in this sale.");
  const name = randomUUID();
  if (!(await adjustOnce(deps, adjustment, name))) deps.loads.request(saleId, "not_loaded");
  const sale = await deps.sales.read(saleId);
  if (!sale) throw notFound("There is no such sale.");
  return sale;
}

/** Adjusts, and loads the sale; false where only the first could be done. */
async function adjustOnce(deps: AdjustStockDeps, adjustment: StockAdjustment, name: string): Promise<boolean> {
  const { saleId } = adjustment;
  /** whether a transaction has come as far as its COMMIT */
  let committing = false;
  const once = async (tx: Tx) => {
    // A load that was overtaken after its beginning begins again: the adjustment stands by then.
    if (!(await hasAudit(tx, saleId, name))) await adjust(tx, adjustment, name);
    committing = true;
  };
  try {
    for (;;) {
      const outcome = await loadSale(deps, saleId, { reason: "adjusted", mendsEpoch: null, alongside: once });
      if (outcome.kind === "loaded" || (await adjustUnloaded(deps, saleId, once))) return true;
    }
  } catch (error) {
    // What was to be committed may have been rolled back, or its COMMIT done and the reply lost: the log tells.
    const stands = committing && (await stoodBehindFence(deps.db, saleId, name).catch(() => null));
    if (stands) return false;
    if (stands === null) {
      const advice = "It is not known whether the stock was adjusted: see auditLog before you repeat it.";
      throw serviceUnavailable(advice, error);
    }
    if (!isOutage(error)) throw error;
    throw serviceUnavailable("The stock could not be adjusted right now: nothing was changed.", error);
  }
}

/** Adjusts a sale that Redis can't hold, in the database alone; false where it can hold it by now. */
function adjustUnloaded(deps: AdjustStockDeps, saleId: string, once: (tx: Tx) => Promise<void>): Promise<boolean> {
  return inTransaction(deps.db, async (tx) => {
    await takeFenceExclusive(tx, saleId);
    const [sale] = await findSales(tx, [saleId]);
    // Opened a moment ago: it may have been loaded with the stock as it was.
    if (sale && isLoadable(sale, deps.redis.clock.now())) return false;
    await once(tx);
    return true;
  });
}

/** Whether the adjustment is in the log, asked behind whoever may still be committing it. */
function stoodBehindFence(db: Database, saleId: string, name: string): Promise<boolean> {
  return inTransaction(db, async (tx) => {
    await takeFenceShared(tx, saleId);
    return hasAudit(tx, saleId, name);
  });
}

function isOutage(error: unknown): boolean {
  return error instanceof RedisUnavailableError || isDatabaseUnavailable(error) || isContention(error);
}

async function adjust(tx: Tx, adjustment: StockAdjustment, name: string): Promise<void> {
  const { saleId, itemId, delta, reason, actor } = adjustment;
  const [sale] = await findSales(tx, [saleId]);
  if (!sale) throw notFound("There is no such sale.");
  const adjusted = await adjustItem(tx, saleId, itemId, delta);
  if (adjusted === null) throw notFound("There is no such item in this sale.");
  if (adjusted === "too_many") {
    throw conflict(delta < 0 ? "Fewer units than that are left unpromised." : "An item can't have as many units.");
  }
  const details = { itemId, delta, adjustment: name };
  await insertAudit(tx, { saleId, actor, action: "adjustStock", reason, details });
}
