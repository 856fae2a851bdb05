import type { Database } from "../db/client.js";
import { isDatabaseUnavailable } from "../db/errors.js";
import { inSnapshot } from "../db/invariants.js";
import { readTraceRows, type TraceRows } from "../db/trace.js";
import type { RequestKey } from "../domain/model.js";
import { type Stage, stageOf } from "../domain/stages.js";
import { REMEMBERED_AFTER_CLOSE_MS } from "../domain/time.js";
import type { OrderQueues } from "../queue/queues.js";
import { type JobSeen, readJob } from "../queue/read-job.js";
import { RedisUnavailableError } from "../redis/errors.js";
import type { RedisLink } from "../redis/link.js";
import {
  hasRequestKey,
  type RequestInRedis,
  readHolder,
  readRequestsInRedis,
  readSalesInRedis,
  type SaleInRedis,
} from "../redis/read-sale.js";

export interface TraceDeps {
  readonly reads: Database;
  readonly redis: RedisLink;
  readonly queues: OrderQueues;
  readonly config: { readonly tuning: { readonly repairAfterMs: number } };
}

/** What Redis holds of one request. */
export interface TraceInRedis {
  readonly sale: SaleInRedis;
  /** null where its key isn't there, or can't be read */
  readonly request: RequestInRedis | null;
  readonly unreadable: boolean;
  /** the requestId of the buyer's live reservation; null where there is none, or the sale isn't loaded */
  readonly holder: string | null;
  readonly job: JobSeen | null;
}

/** What the stores say of one request. */
export interface TraceFacts {
  readonly key: RequestKey;
  /** of the database, all of one moment; the error where it did not answer */
  readonly rows: TraceRows | Error;
  /** read after the rows; the error where it did not answer */
  readonly inRedis: TraceInRedis | RedisUnavailableError;
  /** null where nobody can tell */
  readonly buyerId: string | null;
  /** by the database where it knows the request; null where nobody can tell */
  readonly stage: Stage | null;
  /** the sale closed so long ago that Redis has forgotten it rightly */
  readonly forgotten: boolean;
  readonly now: Date;
  readonly repairAfterMs: number;
}

/** Asks both stores about a request. A store that is away takes nothing from what the other one tells. */
export async function readTraceFacts(deps: TraceDeps, key: RequestKey): Promise<TraceFacts> {
  const now = new Date(deps.redis.clock.now());
  const rows = await inSnapshot(deps.reads, (tx) => readTraceRows(tx, key)).catch((error: unknown) => {
    if (error instanceof Error && isDatabaseUnavailable(error)) return error;
    throw error;
  });
  const { sale = null, request = null, order = null } = rows instanceof Error ? {} : rows;
  const forgotten = sale !== null && sale.closesAt.getTime() + REMEMBERED_AFTER_CLOSE_MS <= now.getTime();
  const buyerInRow = request?.buyerId ?? order?.buyerId ?? null;
  const inRedis = await readInRedis(deps, key, buyerInRow).catch((error: unknown) => {
    if (error instanceof RedisUnavailableError) return error;
    throw error;
  });
  const live = inRedis instanceof Error ? null : inRedis.request;
  return {
    key,
    rows,
    inRedis,
    buyerId: buyerInRow ?? live?.buyerId ?? null,
    stage: request || order ? stageOf(request?.outcome ?? null, order?.status ?? null) : (live?.stage ?? null),
    forgotten,
    now,
    repairAfterMs: deps.config.tuning.repairAfterMs,
  };
}

async function readInRedis(deps: TraceDeps, key: RequestKey, buyerInRow: string | null): Promise<TraceInRedis> {
  const { saleId, requestId } = key;
  const [[sale], [request = null], isThere] = await Promise.all([
    readSalesInRedis(deps.redis, [saleId]),
    readRequestsInRedis(deps.redis, [key]),
    hasRequestKey(deps.redis, saleId, requestId),
  ]);
  if (!sale) throw new Error("Redis was asked for a sale and told of none.");
  const buyerId = buyerInRow ?? request?.buyerId;
  return {
    sale,
    request,
    unreadable: isThere && request === null,
    holder: buyerId && sale.loaded ? await readHolder(deps.redis, saleId, buyerId) : null,
    job: await readJob(deps.redis, deps.queues, saleId, requestId),
  };
}
