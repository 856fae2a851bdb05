import { LRUCache } from "lru-cache";
import type { Database } from "../db/client.js";
import { findSales } from "../db/sales.js";
import type { Sale } from "../domain/model.js";
import { jitteredMs, SECOND } from "../domain/time.js";

/** Sales' rows as this process last read them: one reader at a time a sale, a stale row served while it reads. */
export interface SaleCache {
  /** The sale, or null where there is none; a row may be a second old. @throws a database error where nothing is known */
  get(saleId: string): Promise<Sale | null>;
  /** Forgets a sale that was just changed. */
  forget(saleId: string): void;
}

interface Entry {
  readonly sale: Sale | null;
}

export function createSaleCache(reads: Database): SaleCache {
  const cache = new LRUCache<string, Entry>({
    max: 5_000,
    ttl: 1 * SECOND,
    allowStale: true,
    // A row that can't be read again is better than none while the database is away.
    allowStaleOnFetchRejection: true,
    noDeleteOnFetchRejection: true,
    fetchMethod: async (saleId, _stale, { options }) => {
      // Lifetimes differ, so that what was read together isn't read together again.
      options.ttl = jitteredMs(0.8 * SECOND, 1.2 * SECOND);
      const [sale] = await findSales(reads, [saleId]);
      return { sale: sale ?? null };
    },
  });
  return {
    async get(saleId) {
      return (await cache.fetch(saleId))?.sale ?? null;
    },
    forget: (saleId) => void cache.delete(saleId),
  };
}
