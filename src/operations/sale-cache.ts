import { LRUCache } from "lru-cache";
import type { Database } from "../db/client.js";
import { findSales } from "../db/sales.js";
import type { Sale } from "../domain/model.js";
import { jitteredMs, SECOND } from "../domain/time.js";

/** Sales' rows as this process last read them: one reader at a time a sale, a stale row served while it reads. */
export interface SaleCache {
  /** The sale, or null where there is none; a row may be two seconds old, or older while the database is away. @throws a database error where nothing is known */
  get(saleId: string): Promise<Sale | null>;
  /** The sale as it is now. @throws a database error */
  read(saleId: string): Promise<Sale | null>;
  /** Whether the sale was there when this process last read it; false also where it never did. Asks nobody. */
  knows(saleId: string): boolean;
  /** Takes a row that was just read or written. */
  put(sale: Sale): void;
}

interface Entry {
  readonly sale: Sale | null;
}

/** How long past its lifetime a row is still served while it is read again. */
const STALE_AT_MOST_MS = 1 * SECOND;

export function createSaleCache(reads: Database): SaleCache {
  const read = async (saleId: string): Promise<Entry> => {
    const [sale] = await findSales(reads, [saleId]);
    return { sale: sale ?? null };
  };
  const cache = new LRUCache<string, Entry>({
    max: 5_000,
    ttl: 1 * SECOND,
    allowStale: true,
    // A row that can't be read again is better than none while the database is away.
    allowStaleOnFetchRejection: true,
    noDeleteOnFetchRejection: true,
    // A row that is replaced while it is read must not leave its readers with nothing.
    ignoreFetchAbort: true,
    fetchMethod: (saleId, _stale, { options }) => {
      // Lifetimes differ, so that what was read together isn't read together again.
      options.ttl = jitteredMs(0.8 * SECOND, 1.2 * SECOND);
      return read(saleId);
    },
  });
  return {
    async get(saleId) {
      // What nobody has asked for in a while is not just a little old: then it is read first, if it can be.
      const isOld = cache.getRemainingTTL(saleId) < -STALE_AT_MOST_MS;
      const entry = await cache.fetch(saleId, { allowStale: !isOld });
      return (entry ?? (await read(saleId))).sale;
    },
    async read(saleId) {
      const entry = await read(saleId);
      cache.set(saleId, entry);
      return entry.sale;
    },
    knows: (saleId) => Boolean(cache.peek(saleId, { allowStale: true })?.sale),
    put: (sale) => void cache.set(sale.id, { sale }),
  };
}
