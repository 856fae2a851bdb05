import { isContention, isDatabaseUnavailable } from "../db/errors.js";
import { findSalesWithDueOrders, lockDueOrders } from "../db/order-changes.js";
import { SECOND } from "../domain/time.js";
import { pause } from "../lifecycle/pause.js";
import { type ChangeOrdersDeps, changingOrders } from "./change-orders.js";

/** Orders of one transaction: some ten milliseconds, in which their items' rows are held. */
const AT_ONCE = 500;
/** Sales that are seen to side by side. */
const SALES_AT_ONCE = 4;
/** How long a turn waits for the sales that it has begun: the next one looks for others then, and leaves those alone. */
const TURN_MS = SECOND;
/** How long a sale that could not be seen to is left alone, so that it doesn't keep a place from the others. */
const ASIDE_MS = 2 * SECOND;

/** Ends orders that were not paid in their window. */
export interface Expirer {
  /**
   * Looks for due orders and begins to end them, those of some sales side by side; answers with how many have ended since the
   * last turn. A sale whose rows somebody keeps locked is tried again and again, and keeps no other waiting.
   */
  turn(): Promise<number>;
  /** Waits until nothing is under way; answers as `turn` does. */
  settled(): Promise<number>;
}

/**
 * An expirer of this process: orders are ended by the database's clock, a closed sale's like any other's, and their stock goes
 * back. Safe on any number of workers at once: each takes what no other holds.
 */
export function createExpirer(deps: ChangeOrdersDeps): Expirer {
  const running = new Map<string, Promise<void>>();
  const aside = new Map<string, number>();
  /** saleId → orders of a transaction, where those of before took too long */
  const sizes = new Map<string, number>();
  let ended = 0;

  const endedSinceLast = () => {
    const count = ended;
    ended = 0;
    return count;
  };

  const expireSale = async (saleId: string): Promise<void> => {
    let tried = AT_ONCE;
    try {
      for (;;) {
        const size = sizes.get(saleId) ?? AT_ONCE;
        const some = await expireSome(deps, saleId, size, (count) => {
          tried = count;
        });
        ended += some;
        if (some < size) break;
        if (size < AT_ONCE) sizes.set(saleId, Math.min(2 * size, AT_ONCE));
      }
      sizes.delete(saleId);
    } catch (error) {
      aside.set(saleId, performance.now() + ASIDE_MS);
      // On a database that is slow what is too much for one statement is always too much: fewer get through.
      if (isContention(error) || isDatabaseUnavailable(error)) sizes.set(saleId, Math.max(1, Math.floor(tried / 4)));
      deps.rarely("warn", { saleId, err: error }, "unpaid orders of the sale can't be ended right now");
    } finally {
      running.delete(saleId);
    }
  };

  return {
    async turn() {
      const until = performance.now() + TURN_MS;
      const late = pause(TURN_MS);
      for (const [saleId, asideUntil] of aside) if (asideUntil <= performance.now()) aside.delete(saleId);
      // In another order each time: where there are more than can be seen to, none is always the last.
      for (const saleId of shuffled(await findSalesWithDueOrders(deps.orders))) {
        while (running.size >= SALES_AT_ONCE && performance.now() < until)
          await Promise.race([...running.values(), late]);
        if (running.size >= SALES_AT_ONCE) break;
        if (!running.has(saleId) && !aside.has(saleId)) running.set(saleId, expireSale(saleId));
      }
      await Promise.race([Promise.all(running.values()), late]);
      return endedSinceLast();
    },
    async settled() {
      await Promise.all(running.values());
      return endedSinceLast();
    },
  };
}

function shuffled<Item>(items: readonly Item[]): Item[] {
  return items
    .map((item) => ({ item, at: Math.random() }))
    .sort((one, other) => one.at - other.at)
    .map(({ item }) => item);
}

async function expireSome(
  deps: ChangeOrdersDeps,
  saleId: string,
  limit: number,
  onTry: (count: number) => void,
): Promise<number> {
  return changingOrders(deps, saleId, async ({ tx, change }) => {
    const requestIds = await lockDueOrders(tx, saleId, limit);
    onTry(requestIds.length);
    const changed = await change({
      change: "expire",
      requestIds,
      condition: { due: true },
      reason: "PAYMENT_EXPIRED",
    });
    return changed.length;
  });
}
