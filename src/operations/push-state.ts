import type { Database } from "../db/client.js";
import { closeEndedSales, noteSeqSeen, type WatchedSale } from "../db/sales.js";
import { SEQ_PER_EPOCH } from "../domain/sale-state.js";
import type { Logger } from "../observability/logger.js";
import type { RedisLink } from "../redis/link.js";
import { readSalesInRedis } from "../redis/read-sale.js";
import { callSetState } from "../redis/set-state.js";
import { forEachSale } from "./for-each-sale.js";
import { plausibleSeq } from "./load.js";
import type { Loads } from "./loads.js";

export interface PushStateDeps {
  readonly db: Database;
  readonly redis: RedisLink;
  readonly loads: Loads;
  readonly log: Logger;
}

/** How far the change numbers may run before the database hears of it; loads leave twice as much room. */
const SEQ_STEP = SEQ_PER_EPOCH / 10;

/**
 * Sees to it that Redis agrees with the database about the sales that it may hold: told the state where it has an older
 * one, loaded where it has lost the sale. Safe to run on any number of workers.
 */
export async function pushState(deps: PushStateDeps, sales: readonly WatchedSale[]): Promise<void> {
  const inRedis = await readSalesInRedis(
    deps.redis,
    sales.map((sale) => sale.id),
  );
  await forEachSale(deps.log, sales, async (sale, at) => {
    const present = inRedis[at];
    if (!present) return;
    if (!present.loaded || present.epoch < sale.epoch) deps.loads.request(sale.id, "not_loaded");
    if (present.stateVersion < sale.stateVersion) {
      deps.log.info({ saleId: sale.id, state: sale.state }, "Redis had an older state of the sale");
      const told = await callSetState(deps.redis, sale);
      if (told === "damaged") deps.loads.request(sale.id, "damaged", sale.epoch);
    }
    const seq = plausibleSeq(present.seq);
    if (present.loaded && seq > sale.seqSeen + SEQ_STEP) await noteSeqSeen(deps.db, sale.id, seq);
  });
}

export interface CloseSalesDeps {
  readonly db: Database;
  readonly log: Logger;
}

/** Closes sales whose window has passed. Redis refuses by the clock anyway; it hears of the state from `pushState`. */
export async function closeSales(deps: CloseSalesDeps): Promise<void> {
  for (const saleId of await closeEndedSales(deps.db)) {
    deps.log.info({ saleId }, "the sale's window has passed: closed");
  }
}
