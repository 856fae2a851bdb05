import { insertAudit } from "../db/audit.js";
import { findSales, updateSaleState } from "../db/sales.js";
import { inTransaction } from "../db/transaction.js";
import { conflict, notFound, serviceUnavailable } from "../domain/errors.js";
import { isId } from "../domain/ids.js";
import type { Sale } from "../domain/model.js";
import { SALE_TRANSITIONS, type SaleAction } from "../domain/sale-state.js";
import { RedisUnavailableError } from "../redis/errors.js";
import { callSetState } from "../redis/set-state.js";
import { checkReason } from "./check-input.js";
import { type LoadDeps, loadSale } from "./load.js";
import type { SaleCache } from "./sale-cache.js";

export interface ChangeSaleStateDeps extends LoadDeps {
  readonly sales: SaleCache;
}

export interface SaleCommand {
  readonly saleId: string;
  readonly action: SaleAction;
  /** why, for the buyers and the audit log; required to pause */
  readonly reason?: string | undefined;
  /** the operator */
  readonly actor: string;
}

/**
 * Opens, pauses, resumes or closes a sale: first in the database, whose state leads, then in Redis, so that it is in force
 * on every instance when this returns. A repeat finds it done and makes sure of Redis again.
 *
 * @throws SluiceError NOT_FOUND, CONFLICT (not from the state it is in), BAD_USER_INPUT, SERVICE_UNAVAILABLE: the
 *   database has it, Redis could not be told yet and is told as soon as it answers
 */
export async function changeSaleState(deps: ChangeSaleStateDeps, command: SaleCommand): Promise<Sale> {
  const { saleId, action } = command;
  if (!isId(saleId)) throw notFound("There is no such sale.");
  if (action === "pause") checkReason(command.reason);
  const transition = SALE_TRANSITIONS[action];

  const sale = await inTransaction(deps.db, async (tx) => {
    const [before] = await findSales(tx, [saleId]);
    if (!before) throw notFound("There is no such sale.");
    if (action === "open" && before.state === "DRAFT" && before.closesAt.getTime() <= deps.redis.clock.now()) {
      throw conflict("The sale's window has passed.");
    }
    const pauseReason = action === "pause" ? (command.reason ?? null) : null;
    const changed = await updateSaleState(tx, saleId, transition.from, transition.to, pauseReason);
    if (changed > 0)
      await insertAudit(tx, { saleId, actor: command.actor, action: `${action}Sale`, reason: command.reason });
    const [after] = await findSales(tx, [saleId]);
    // By the row count, not by what was read before: two operators may be at it.
    if (!after || after.state !== transition.to) throw conflict(`A sale that is ${after?.state} can't ${action}.`);
    return after;
  });

  deps.sales.put(sale);
  await tellRedis(deps, sale);
  return sale;
}

async function tellRedis(deps: ChangeSaleStateDeps, sale: Sale): Promise<void> {
  try {
    const told = await callSetState(deps.redis, sale);
    // A key that can't take the state can't be sold from either: the load makes it anew, state included.
    if (told === "damaged") await loadSale(deps, sale.id, { reason: "damaged", mendsEpoch: sale.epoch });
    else if (sale.state === "OPEN") await loadSale(deps, sale.id, { reason: "opened", mendsEpoch: null });
  } catch (error) {
    if (!(error instanceof RedisUnavailableError)) throw error;
    throw serviceUnavailable(
      `The sale is ${sale.state}, but Redis could not be told yet. It will be; or send this again.`,
      error,
    );
  }
}
