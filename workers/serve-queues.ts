import { Redis } from "ioredis";
import { isRequestId } from "../src/domain/ids.js";
import { SECOND } from "../src/domain/time.js";
import { type Ceiling, createCeiling } from "../src/lifecycle/ceiling.js";
import { gather } from "../src/lifecycle/gather.js";
import { pause } from "../src/lifecycle/pause.js";
import { bury } from "../src/operations/bury.js";
import { listWatchedSales, type WatchedSale } from "../src/operations/watched-sales.js";
import { type WriteResult, writeOrders } from "../src/operations/write-orders.js";
import { consumeOrders, type JobResult, type OrderConsumer } from "../src/queue/consumer.js";
import { joinWrites } from "../src/redis/join-writes.js";
import { closeClient, reconnectDelay } from "../src/redis/link.js";
import type { Resources } from "../src/resources.js";

/** The queues that this process serves: one of each open sale, found as sales open and close. */
export interface ServedQueues {
  /** Looks for sales again. */
  refresh(): Promise<void>;
  /** The sales that Redis may hold, as they were found last; the queues of some of them are served. */
  sales(): readonly WatchedSale[];
  /** Lets the jobs under way finish. */
  close(deadlineMs: number): Promise<void>;
}

/** Batches of a sale under way at once: while one commits, the next is being put together. */
const BATCHES_AT_ONCE = 2;

export function serveQueues(resources: Resources): ServedQueues {
  const { log, databaseHealth } = resources;
  const connection = new Redis(resources.config.REDIS_URL, {
    connectionName: "sluice:worker:queues",
    // BullMQ's workers wait for Redis as long as it takes.
    maxRetriesPerRequest: null,
    retryStrategy: reconnectDelay,
    connectTimeout: 2 * SECOND,
    // A network that swallows everything: longer than BullMQ blocks for a job, ten seconds at the most.
    socketTimeout: 15 * SECOND,
  });
  connection.setMaxListeners(0);
  connection.on("error", () => {});
  const { ordersPerSecond } = resources.config.tuning.writer;
  const ceiling = ordersPerSecond === null ? null : createCeiling(ordersPerSecond);
  const consumers = new Map<string, OrderConsumer>();
  let sales: readonly WatchedSale[] = [];

  databaseHealth.onChange((up) => {
    for (const consumer of consumers.values()) void (up ? consumer.resume() : consumer.pause());
  });

  return {
    sales: () => sales,
    async refresh() {
      sales = await listWatchedSales(resources);
      const served = new Set(sales.filter((sale) => sale.served).map((sale) => sale.id));
      for (const saleId of served) {
        if (consumers.has(saleId)) continue;
        consumers.set(saleId, consumeSale(resources, connection, ceiling, saleId));
        log.info({ saleId }, "serving the sale's queue");
      }
      for (const [saleId, consumer] of consumers) {
        if (served.has(saleId)) continue;
        consumers.delete(saleId);
        log.info({ saleId }, "the sale is over: its queue is no longer served");
        void consumer.close(10 * SECOND);
      }
    },
    async close(deadlineMs) {
      await Promise.race([
        Promise.all([...consumers.values()].map((consumer) => consumer.close(deadlineMs))),
        pause(deadlineMs + SECOND),
      ]);
      await closeClient(connection);
    },
  };
}

function consumeSale(resources: Resources, connection: Redis, ceiling: Ceiling | null, saleId: string): OrderConsumer {
  const { maxJobs, maxWaitMs, inFlight } = resources.config.tuning.writer;
  const sendTogether = joinWrites(connection);
  const batches = gather<string, WriteResult>({
    maxItems: maxJobs,
    maxWaitMs,
    maxRuns: BATCHES_AT_ONCE,
    ...(ceiling && { admit: ceiling.take }),
    run: async (requestIds, answer) => {
      const results = await writeOrders(resources, saleId, requestIds);
      // Each job of the batch is acknowledged with a command of its own, and fetches the next.
      sendTogether();
      answer(results);
    },
  });
  return consumeOrders({
    saleId,
    connection,
    concurrency: inFlight,
    jobs: resources.config.tuning.jobs,
    onError: (error) => resources.log.debug({ saleId, err: error }, "trouble with the queue"),
    onDead: (jobId, { stage, error, attempts }) => {
      // An id that is none names no request of ours: there is nothing to be parked.
      if (!isRequestId(jobId)) {
        resources.metrics.deadLetters.inc({ stage });
        resources.log.error({ saleId, stage, why: error }, "a job that names no request is given up");
        return;
      }
      void bury(resources, saleId, [{ requestId: jobId, stage, lastError: error, attempts }]).catch((failure) => {
        resources.rarely("warn", { saleId, err: failure }, "a dead letter waits for the forwarder");
      });
    },
    async handle(requestId) {
      if (!resources.databaseHealth.isUp()) return { kind: "put_off", why: "the database is away" };
      return asJobResult(await batches.add(requestId));
    },
  });
}

function asJobResult(result: WriteResult): JobResult {
  switch (result.kind) {
    case "decided":
      return { kind: "done" };
    case "put_off":
    case "failed":
      return result;
    case "missing":
      return { kind: "hopeless", error: new Error("The request was never journaled.") };
  }
}
