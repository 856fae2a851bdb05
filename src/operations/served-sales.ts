import type { Database } from "../db/client.js";
import { findServedSales, type ServedSale } from "../db/sales.js";

export type { ServedSale };

/** Sales whose queue is served: open, paused, or with undecided requests. */
export function listServedSales(deps: { readonly db: Database }): Promise<ServedSale[]> {
  return findServedSales(deps.db);
}
