import type { Database, Tx } from "../db/client.js";
import { readEpoch, takeFenceShared } from "../db/fence.js";
import { type ChangedOrder, changeOrders, type OrderChangeInput } from "../db/order-changes.js";
import { inTransaction } from "../db/transaction.js";
import { drilling, failpoint } from "../lifecycle/failpoints.js";
import type { Lanes } from "../lifecycle/lanes.js";
import type { LogRarely } from "../observability/logger.js";
import { carryEvents, type RelayDeps } from "./relay.js";

export interface ChangeOrdersDeps extends RelayDeps {
  /** the pool of what becomes of orders: who waits for a row here takes no connection from those who buy */
  readonly orders: Database;
  readonly orderLanes: Lanes;
  readonly rarely: LogRarely;
}

/** One transaction in which orders of a sale are changed. */
export interface OrderTransaction {
  readonly tx: Tx;
  /** Changes those that meet the condition, and answers with them. */
  change(input: Omit<OrderChangeInput, "epoch">): Promise<ChangedOrder[]>;
}

/**
 * Runs `body` in one transaction under the sale's fence, and when that is committed tells Redis what was changed in it: at
 * once where Redis answers, so that a buyer may reserve again when his cancellation returns, else by the relay. Without
 * such a sale nothing can be changed.
 *
 * Some changes of a sale are under way at once and the others wait: a row that somebody keeps locked must not take the
 * connections of other sales. `body` may run again where others were in the way.
 *
 * @throws SluiceError SERVICE_UNAVAILABLE after too long a wait, nothing having been done; a database error
 */
export async function changingOrders<Result>(
  deps: ChangeOrdersDeps,
  saleId: string,
  body: (transaction: OrderTransaction) => Promise<Result>,
): Promise<Result> {
  const work = () => changeInTransaction(deps.orders, saleId, body);
  const { result, changed } = await deps.orderLanes.run(saleId, work);
  if (changed.length > 0) await tellRedis(deps, saleId, changed);
  return result;
}

function changeInTransaction<Result>(
  orders: Database,
  saleId: string,
  body: (transaction: OrderTransaction) => Promise<Result>,
): Promise<{ readonly result: Result; readonly changed: readonly ChangedOrder[] }> {
  return inTransaction(orders, async (tx) => {
    await takeFenceShared(tx, saleId);
    const epoch = await readEpoch(tx, saleId);
    const all: ChangedOrder[] = [];
    const change = async (input: Omit<OrderChangeInput, "epoch">) => {
      if (epoch === null) return [];
      const some = await changeOrders(tx, saleId, { ...input, epoch });
      if (drilling && some.length > 0) await failpoint("order.after_stock");
      all.push(...some);
      return some;
    };
    return { result: await body({ tx, change }), changed: all };
  });
}

async function tellRedis(deps: ChangeOrdersDeps, saleId: string, changed: readonly ChangedOrder[]): Promise<void> {
  if (drilling) await failpoint("order.after_commit");
  const events = changed.map(({ event }) => event);
  for (const { toStage } of events) deps.metrics.orderChanges.add(saleId, toStage.toLowerCase());
  try {
    await carryEvents(deps, saleId, events);
  } catch (error) {
    deps.rarely("warn", { saleId, err: error }, "orders were changed, but Redis could not be told yet");
  }
}
