import type { Database } from "../db/client.js";
import { findSales } from "../db/sales.js";
import type { Sale } from "../domain/model.js";
import { SECOND } from "../domain/time.js";
import { orWhenLate } from "../lifecycle/pause.js";
import { listWatchedSales } from "./watched-sales.js";

export interface ServedSalesDeps {
  readonly reads: Database;
}

/** How old a list may be before it is read again, and how long a reader who has an older one waits for the new one. */
const MAX_AGE_MS = 2 * SECOND;
const PATIENCE_MS = 1 * SECOND;

/**
 * A list of the sales whose queue has to be served, the newest first: open, paused, or with undecided requests. However many
 * ask, it is read once at a time and every two seconds at most; while the database is away the last one stands.
 * It rejects with a database error where there is no last one.
 */
export function createServedSales(deps: ServedSalesDeps): () => Promise<readonly Sale[]> {
  let last: { readonly sales: readonly Sale[]; readonly at: number } | undefined;
  let reading: Promise<readonly Sale[]> | undefined;

  const read = async () => {
    try {
      const sales = await findServedSales(deps.reads);
      last = { sales, at: performance.now() };
      return sales;
    } finally {
      reading = undefined;
    }
  };

  return async () => {
    if (last && performance.now() - last.at < MAX_AGE_MS) return last.sales;
    reading ??= read();
    if (!last) return reading;
    const { sales } = last;
    return orWhenLate(
      reading.catch(() => sales),
      PATIENCE_MS,
      () => sales,
    );
  };
}

async function findServedSales(reads: Database): Promise<Sale[]> {
  const watched = await listWatchedSales({ db: reads });
  const ids = watched.filter((sale) => sale.served).map((sale) => sale.id);
  const sales = await findSales(reads, ids);
  return sales.filter((sale) => sale !== null).sort(newestFirst);
}

function newestFirst(a: Sale, b: Sale): number {
  return b.createdAt.getTime() - a.createdAt.getTime() || (a.id < b.id ? 1 : -1);
}
