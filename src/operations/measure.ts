import type { Database } from "../db/client.js";
import { measureDueRefunds, measureUnfinishedWork, measureUnpaidOrders } from "../db/unfinished.js";
import type { Logger } from "../observability/logger.js";
import type { Metrics } from "../observability/metrics.js";
import type { JobCounts, OrderQueues } from "../queue/queues.js";
import type { RedisLink } from "../redis/link.js";
import { readBacklogs } from "../redis/read-sale.js";
import { forEachSale } from "./for-each-sale.js";
import type { WatchedSale } from "./watched-sales.js";

const NONE_UNPAID = { unpaid: 0, overdueSeconds: 0 };
/** A sale is a label: those whose queue is served come first, then those that closed last. */
const SALES_AT_MOST = 500;

export interface MeasureRedisDeps {
  readonly redis: RedisLink;
  readonly queues: OrderQueues;
  readonly log: Logger;
  readonly metrics: Metrics;
}

/**
 * Measures in Redis how long the lines of the sales are and what is left of their stock. A sale that Redis doesn't have
 * gets no figures. @throws RedisUnavailableError; the figures then stay, and the time at which they were measured
 */
export async function measureRedis(deps: MeasureRedisDeps, sales: readonly WatchedSale[]): Promise<void> {
  const measured = choose(sales);
  deps.metrics.sales.setInRedis(
    await readBacklogs(
      deps.redis,
      measured.map((sale) => sale.id),
    ),
  );
  deps.metrics.sales.measured("redis");
  const jobs = new Map<string, JobCounts>();
  const served = measured.filter((sale) => sale.served);
  try {
    await forEachSale(deps.log, served, async ({ id }) => void jobs.set(id, await deps.queues.counts(id)));
  } finally {
    deps.metrics.sales.setJobs(jobs);
  }
}

export interface MeasureDatabaseDeps {
  readonly reads: Database;
  readonly metrics: Metrics;
}

/**
 * Measures in the database what has no end yet, and forgets what was counted of sales that are no longer watched.
 * @throws a database error; the figures then stay, and the time at which they were measured
 */
export async function measureDatabase(deps: MeasureDatabaseDeps, sales: readonly WatchedSale[]): Promise<void> {
  const measured = choose(sales).map((sale) => sale.id);
  deps.metrics.decided.keepOnly(measured);
  deps.metrics.orderChanges.keepOnly(measured);
  const unpaid = await measureUnpaidOrders(deps.reads, measured);
  const unfinished = await measureUnfinishedWork(deps.reads, measured);
  const figures = [...unfinished].map(([id, work]) => [id, { ...work, ...(unpaid.get(id) ?? NONE_UNPAID) }] as const);
  deps.metrics.sales.setInDatabase(new Map(figures));
  deps.metrics.sales.setDueRefunds(await measureDueRefunds(deps.reads));
  deps.metrics.sales.measured("database");
}

function choose(sales: readonly WatchedSale[]): WatchedSale[] {
  if (sales.length <= SALES_AT_MOST) return [...sales];
  const foremost = (a: WatchedSale, b: WatchedSale) =>
    Number(b.served) - Number(a.served) || b.closesAt.getTime() - a.closesAt.getTime();
  return [...sales].sort(foremost).slice(0, SALES_AT_MOST);
}
