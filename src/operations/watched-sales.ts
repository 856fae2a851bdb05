import type { Database } from "../db/client.js";
import { findWatchedSales, type WatchedSale } from "../db/sales.js";
import { REMEMBERED_AFTER_CLOSE_MS } from "../domain/time.js";

export type { WatchedSale };

/** Sales that Redis may hold, and which of them have a queue to be served. */
export function listWatchedSales(deps: { readonly db: Database }): Promise<WatchedSale[]> {
  return findWatchedSales(deps.db, REMEMBERED_AFTER_CLOSE_MS);
}
