import type { Database } from "../db/client.js";
import { findSalePage, findUnpromisedUnits, type SaleListQuery } from "../db/sales.js";
import type { LiveSale, Page, Sale } from "../domain/model.js";
import { SEQ_PER_EPOCH } from "../domain/sale-state.js";
import { RedisUnavailableError } from "../redis/errors.js";
import type { RedisLink } from "../redis/link.js";
import { readSalesInRedis, type SaleInRedis } from "../redis/read-sale.js";
import type { SaleCache } from "./sale-cache.js";

export interface ReadSalesDeps {
  readonly reads: Database;
  readonly redis: RedisLink;
  readonly sales: SaleCache;
}

/** A sale with its live stock, drafts included, or null. */
export async function readSale(deps: ReadSalesDeps, saleId: string): Promise<LiveSale | null> {
  const [sale] = await readSales(deps, [saleId]);
  return sale ?? null;
}

/**
 * Sales with their live stock, in the order of the ids; null for what isn't there. Stock comes from Redis where the sale
 * is loaded, else from the database: then the version is the lowest of the epoch, so that a client keeps what it has.
 */
export async function readSales(deps: ReadSalesDeps, saleIds: readonly string[]): Promise<(LiveSale | null)[]> {
  const [rows, inRedis] = await Promise.all([
    Promise.all(saleIds.map((saleId) => deps.sales.get(saleId))),
    readFromRedis(deps, saleIds),
  ]);
  const current = await Promise.all(rows.map((row, at) => refreshed(deps, row, inRedis[at] ?? null)));
  const absent = current.filter((sale, at) => sale && !inRedis[at]?.loaded).map((sale) => (sale as Sale).id);
  const fallback = absent.length > 0 ? await findUnpromisedUnits(deps.reads, absent) : new Map();
  return current.map((sale, at) => {
    if (!sale) return null;
    const live = inRedis[at];
    return live?.loaded
      ? { ...sale, remaining: live.remaining, version: live.seq }
      : { ...sale, remaining: fallback.get(sale.id) ?? new Map(), version: sale.epoch * SEQ_PER_EPOCH };
  });
}

/** A page of sales, the newest first. */
export function listSales(deps: Pick<ReadSalesDeps, "reads">, query: SaleListQuery): Promise<Page<Sale>> {
  return findSalePage(deps.reads, query);
}

/**
 * The row again, where Redis has heard of a newer state than the cached row has, or holds a newer loading: with that, units
 * may have been put on sale, and what is left must not be shown beside what there was before.
 */
async function refreshed(deps: ReadSalesDeps, row: Sale | null, live: SaleInRedis | null): Promise<Sale | null> {
  if (!row || !live) return row;
  const isNewer = live.stateVersion > row.stateVersion || live.epoch > row.epoch;
  return isNewer ? deps.sales.read(row.id) : row;
}

async function readFromRedis(deps: ReadSalesDeps, saleIds: readonly string[]): Promise<(SaleInRedis | null)[]> {
  try {
    return await readSalesInRedis(deps.redis, saleIds);
  } catch (error) {
    if (error instanceof RedisUnavailableError) return saleIds.map(() => null);
    throw error;
  }
}
