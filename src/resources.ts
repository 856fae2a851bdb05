import type DataLoader from "dataloader";
import { createSoldOutGate, type SoldOutGate } from "./admission/sold-out-gate.js";
import type { Config } from "./config.js";
import { connectDatabase, type Database } from "./db/client.js";
import { probeDatabase } from "./db/probe.js";
import { serviceUnavailable } from "./domain/errors.js";
import { orderIdOf } from "./domain/ids.js";
import type { LiveSale, RequestKey, Reservation } from "./domain/model.js";
import { SECOND } from "./domain/time.js";
import { type DependencyHealth, watchDependency } from "./lifecycle/dependency-health.js";
import { joinReads } from "./lifecycle/join-reads.js";
import { createLanes, type Lanes } from "./lifecycle/lanes.js";
import { orWhenLate } from "./lifecycle/pause.js";
import { createBuyerMask, createLogger, type Logger, type LogRarely, logRarely } from "./observability/logger.js";
import { createMetrics, type Metrics, type ProcessName } from "./observability/metrics.js";
import { createJournal, type Journal } from "./operations/journal.js";
import { createLoads, type Loads } from "./operations/loads.js";
import { readReservations } from "./operations/read-reservations.js";
import { readSale } from "./operations/read-sales.js";
import { createSaleCache, type SaleCache } from "./operations/sale-cache.js";
import type { PaymentProvider } from "./payments/provider.js";
import { createPaymentSimulator } from "./payments/simulator.js";
import { createOrderQueues, type OrderQueues } from "./queue/queues.js";
import { createSaleEvents, type SaleEvents } from "./realtime/sale-events.js";
import { createSaleTickers, type SaleTickers } from "./realtime/sale-tickers.js";
import { unfitBecause } from "./redis/fitness.js";
import { connectRedis, type RedisLink } from "./redis/link.js";

/** Everything a process holds open. Operations declare the few of these that they need. */
export interface Resources {
  readonly config: Config;
  readonly log: Logger;
  /** for what may fail thousands of times a second */
  readonly rarely: LogRarely;
  readonly maskBuyer: (buyerId: string) => string;
  readonly metrics: Metrics;
  readonly redis: RedisLink;
  /** the sale path's pool */
  readonly db: Database;
  /** the pool of what becomes of orders, so that one whose rows are locked takes nothing from those who buy */
  readonly orders: Database;
  readonly orderLanes: Lanes;
  /** the pool of reads, so that neither starves the other */
  readonly reads: Database;
  readonly databaseHealth: DependencyHealth;
  readonly queues: OrderQueues;
  readonly sales: SaleCache;
  readonly loads: Loads;
  readonly journal: Journal;
  readonly events: SaleEvents;
  readonly soldOutGate: SoldOutGate;
  readonly tickers: SaleTickers<LiveSale>;
  readonly reservationLoader: DataLoader<RequestKey, Reservation | null>;
  /** For how long all dependencies have answered without a break, in milliseconds: 0 while one is away. */
  wellForMs(): number;
  /** null where there is none */
  readonly payments: PaymentProvider | null;
  /** Which of the dependencies answer right now. */
  readiness(): Promise<{ redis: boolean; database: boolean }>;
  /** Finishes what is under way, then closes every client; by the deadline at the latest. */
  close(deadlineMs: number): Promise<void>;
}

const SALE_TICK_MS = 250;

export function openResources(config: Config, processName: ProcessName): Resources {
  const { tuning } = config;
  const log = createLogger({ level: config.LOG_LEVEL, name: processName });
  const metrics = createMetrics(processName);
  const rarely = logRarely(log, 5 * SECOND);
  const onRedisError = (error: Error) => rarely("warn", { err: error }, "trouble with Redis");
  const onDatabaseError = (error: Error) => rarely("warn", { err: error }, "trouble with the database");

  const redis = connectRedis({
    url: config.REDIS_URL,
    name: processName,
    commandTimeoutMs: tuning.deadlines.redisCommandMs,
    unfitBecause: (facts) => unfitBecause(facts, config.NODE_ENV === "production"),
    onError: onRedisError,
  });
  const pool = { url: config.DATABASE_URL, onError: onDatabaseError, ...tuning.sql };
  const db = connectDatabase({
    ...pool,
    name: processName,
    pool: tuning.pools.sale,
    waitMs: tuning.sql.statementMs,
    watch: (use) => metrics.watchPool("sale", use),
  });
  const orders = connectDatabase({
    ...pool,
    name: `${processName}:orders`,
    pool: tuning.pools.orders,
    waitMs: tuning.sql.statementMs,
    watch: (use) => metrics.watchPool("orders", use),
  });
  const orderLanes = createLanes({
    perKey: tuning.orderLanes,
    waitMs: tuning.deadlines.requestMs,
    late: () => serviceUnavailable("Too much of this sale is under way. Send the same again."),
  });
  const reads = connectDatabase({
    ...pool,
    name: `${processName}:reads`,
    pool: tuning.pools.reads,
    waitMs: tuning.sql.statementMs,
    statementMs: tuning.sql.readStatementMs,
    watch: (use) => metrics.watchPool("reads", use),
  });
  // A connection of its own, so that slow reads don't look like a database that is away; and a new one every other second,
  // so that one that is closed to new connections doesn't look well.
  const probe = connectDatabase({
    ...pool,
    name: `${processName}:probe`,
    pool: 1,
    waitMs: SECOND,
    lifetimeSeconds: 2,
  });
  const databaseHealth = watchDependency({
    probe: () => probeDatabase(probe),
    intervalMs: SECOND,
    timeoutMs: SECOND,
  });
  const redisHealth = watchDependency({
    // A connection that is only being made is not yet one that failed.
    probe: () => redis.whenUsable(SECOND).then(() => redis.run((client) => client.ping())),
    intervalMs: SECOND,
    timeoutMs: SECOND,
  });
  let wellSince: number | null = null;
  const tellChanges = (dependency: string, name: string, health: DependencyHealth) => {
    let wasAway = false;
    metrics.dependencyUp.set({ dependency }, 0);
    health.onChange((up) => {
      metrics.dependencyUp.set({ dependency }, up ? 1 : 0);
      wellSince = databaseHealth.isUp() && redisHealth.isUp() ? performance.now() : null;
      if (!up) log.error({ dependency }, `${name} is away`);
      // As loud as the alarm: who saw that one must see that it is over.
      else if (wasAway) log.warn({ dependency }, `${name} answers again`);
      wasAway = !up;
    });
  };
  tellChanges("redis", "Redis", redisHealth);
  tellChanges("database", "the database", databaseHealth);

  const queues = createOrderQueues(redis, onRedisError);
  const sales = createSaleCache(reads);
  const base = { config, log, rarely, metrics, redis, db, orders, orderLanes, reads, databaseHealth, queues, sales };
  const loads = createLoads(base);
  const journal = createJournal({ ...base, loads });
  const events = createSaleEvents({
    url: config.REDIS_URL,
    redis,
    heardWithinMs: tuning.soldOut.heardWithinMs,
    onError: onRedisError,
  });
  const soldOutGate = createSoldOutGate({ ...base, events });
  const tickers = createSaleTickers<LiveSale>({
    read: (saleId) => readSale(base, saleId),
    everyMs: SALE_TICK_MS,
    onError: (error) => log.debug({ err: error }, "a watched sale can't be read"),
  });
  const reservationLoader = joinReads<RequestKey, Reservation>(
    (keys) => readReservations(base, keys),
    ({ saleId, requestId }) => orderIdOf(saleId, requestId),
  );

  return {
    ...base,
    maskBuyer: createBuyerMask(config.JWT_SECRET ?? config.DATABASE_URL),
    loads,
    journal,
    events,
    soldOutGate,
    tickers,
    reservationLoader,
    wellForMs: () => (wellSince === null ? 0 : performance.now() - wellSince),
    payments: paymentProviderOf(config),
    async readiness() {
      const answered = await redis
        .run((client) => client.ping())
        .then(
          () => true,
          () => false,
        );
      return { redis: answered, database: databaseHealth.isUp() };
    },
    async close(deadlineMs) {
      await orWhenLate(Promise.all([journal.drained(), loads.settled()]), deadlineMs, () => {});
      redisHealth.stop();
      databaseHealth.stop();
      const closing = Promise.allSettled([
        queues.close(),
        events.close(),
        redis.close(),
        db.$disconnect(),
        orders.$disconnect(),
        reads.$disconnect(),
        probe.$disconnect(),
      ]);
      await orWhenLate(closing, SECOND, () => {});
    },
  };
}

/** Where your own provider goes in: docs/payments.md. The demo's needs its webhook, for that is how it says who has paid. */
function paymentProviderOf({ SLUICE_DEMO, PAYMENT_WEBHOOK_SECRET }: Config): PaymentProvider | null {
  return SLUICE_DEMO && PAYMENT_WEBHOOK_SECRET ? createPaymentSimulator() : null;
}
