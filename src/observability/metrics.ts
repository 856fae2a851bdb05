import { type Counter, collectDefaultMetrics, type Gauge, type Histogram, Registry } from "prom-client";
import { createReserveMeter, type ReserveMeter } from "./reserve-meter.js";
import { createSaleGauges, type SaleGauges } from "./sale-gauges.js";
import { createSaleTally, type SaleTally } from "./sale-tally.js";
import { defineSeries, QUICK_SECONDS, type Series, withoutNought } from "./series.js";
import { createSoldOutGateMeter, type SoldOutGateMeter } from "./sold-out-gate-meter.js";
import { readVersion } from "./version.js";

/**
 * Everything the processes count. Labels are outcomes, sales, stages and the like, never a buyer. What each means, and
 * what to look at, is in docs/metrics.md. Nothing here waits for a store: reading must work while one is away.
 */
export interface Metrics {
  readonly registry: Registry;
  readonly reserves: ReserveMeter;
  readonly soldOutGate: SoldOutGateMeter;
  readonly httpInFlight: Gauge;
  /** GraphQL requests over HTTP, by whether the fast lane answered them or all of Yoga did */
  readonly graphqlRequests: Counter<"lane">;
  readonly webSockets: Gauge;
  readonly subscriptions: Gauge<"field" | "transport">;
  /** requests made durable, and those that were not */
  readonly journaled: Counter<"outcome">;
  /** one group of requests becoming durable */
  readonly journalSeconds: Histogram;
  /** requests decided by the order writer */
  readonly decided: SaleTally;
  /** orders paid, cancelled, expired, refunded */
  readonly orderChanges: SaleTally;
  /** payments that were reported, by what they came to */
  readonly payments: Counter<"outcome">;
  /** one batch of orders being written */
  readonly writeSeconds: Histogram;
  /** from the acceptance of a request to its order */
  readonly orderDelaySeconds: Histogram;
  /** loads of a sale into Redis, by what asked for them and how they ended */
  readonly loads: Counter<"reason" | "outcome">;
  readonly loadSeconds: Histogram;
  /** what the two stores disagreed about, as it was met */
  readonly drift: Counter<"stage">;
  /** requests that the forwarder journaled, queued again or advanced */
  readonly forwarded: Counter<"outcome">;
  /** what is broken in a sale, as it was checked last: none is 0 */
  readonly findings: Gauge<"sale" | "invariant">;
  readonly reconciledAt: Gauge;
  /** requests that were given up, by where they came to their end */
  readonly deadLetters: Counter<"stage">;
  /** requests that were compensated */
  readonly compensations: Counter<"outcome">;
  /** request events, by how they ended */
  readonly events: Counter<"outcome">;
  /** 1 while a dependency answers */
  readonly dependencyUp: Gauge<"dependency">;
  /** what is measured in the stores */
  readonly sales: SaleGauges;
  /** Has the use of a pool told from now on. */
  watchPool(pool: string, use: () => PoolUse): void;
}

/** Connections of a pool, and callers that wait for one. */
export interface PoolUse {
  readonly inUse: number;
  readonly idle: number;
  readonly waiting: number;
}

/** From an order written at once to one that waited for a crowd, or for a store that was away. */
const ORDER_SECONDS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600] as const;

const JOURNALED = ["journaled", "refused", "other", "failed"];
const FORWARDED = ["journaled", "requeued", "advanced", "given_up"];
const PAYMENTS = ["paid", "already_paid", "refund_due", "amount_mismatch", "unreadable"];
const CARRIED = ["applied", "absorbed"];

/** The processes there are; a command is one for as long as it runs. */
export type ProcessName = "api" | "worker" | "command";

export function createMetrics(process: ProcessName): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const series = defineSeries(registry);
  const { counter, histogram, gauge } = series;
  const byOutcome = (name: string, help: string, known: readonly string[]) =>
    fromZero(
      counter(name, help, ["outcome"]),
      known.map((outcome) => ({ outcome })),
    );
  gauge("build_info", "What runs here", "first", ["process", "version", "node"]).set(
    { process, version: readVersion(), node: globalThis.process.version },
    1,
  );
  return {
    registry,
    reserves: createReserveMeter(series),
    soldOutGate: createSoldOutGateMeter(series),
    httpInFlight: gauge("http_requests_in_flight", "HTTP requests that are not over, SSE streams among them", "sum"),
    graphqlRequests: fromZero(
      counter("graphql_requests_total", "GraphQL requests over HTTP, by the lane that answered", ["lane"]),
      ["fast", "full"].map((lane) => ({ lane })),
    ),
    webSockets: gauge("websocket_connections", "Open WebSockets", "sum"),
    subscriptions: gauge("subscriptions_open", "Open subscriptions", "sum", ["field", "transport"]),
    journaled: byOutcome("journaled_total", "Accepted requests on their way into the database", JOURNALED),
    journalSeconds: histogram("journal_duration_seconds", "Time a group took to become durable", QUICK_SECONDS),
    decided: createSaleTally(series, "decided_total", "Requests decided by the order writer"),
    orderChanges: createSaleTally(series, "order_changes_total", "Orders paid, cancelled, expired or refunded"),
    payments: byOutcome("payments_total", "Payments reported, by what they came to", PAYMENTS),
    writeSeconds: histogram("write_duration_seconds", "Time a batch of orders took to be written", QUICK_SECONDS),
    orderDelaySeconds: histogram(
      "acceptance_to_order_seconds",
      "Age of a request when its order was written",
      ORDER_SECONDS,
    ),
    loads: counter("loads_total", "Loads of a sale into Redis", ["reason", "outcome"]),
    loadSeconds: histogram("load_duration_seconds", "Time a load of a sale took", QUICK_SECONDS),
    drift: fromZero(
      counter("drift_total", "Disagreements of the stores, as they were met", ["stage"]),
      ["drift", "damaged", "load"].map((stage) => ({ stage })),
    ),
    forwarded: byOutcome("forwarded_total", "Requests that the forwarder helped on", FORWARDED),
    findings: gauge("invariant_findings", "What is broken in a sale, by invariant", "max", ["sale", "invariant"]),
    reconciledAt: withoutNought(gauge("reconciled_timestamp_seconds", "When sales were checked last", "max")),
    deadLetters: fromZero(
      counter("dead_letters_total", "Requests that were given up", ["stage"]),
      ["write", "job", "stalled", "lost"].map((stage) => ({ stage })),
    ),
    compensations: byOutcome("compensations_total", "Requests decided FAILED, their stock given back", ["compensated"]),
    events: byOutcome("request_events_total", "Request events carried to Redis", CARRIED),
    dependencyUp: gauge("dependency_up", "1 while a dependency answers", "min", ["dependency"]),
    sales: createSaleGauges(series),
    watchPool: createPoolGauge(series),
  };
}

/** Tells of what hasn't happened yet: the first time it does must be seen as growth. */
function fromZero<Label extends string>(
  series: Counter<Label>,
  known: readonly Record<Label, string>[],
): Counter<Label> {
  for (const labels of known) series.inc(labels, 0);
  return series;
}

/** Read when it is asked for: a pool's use changes too often to be told of. */
function createPoolGauge(series: Series): Metrics["watchPool"] {
  const pools = new Map<string, () => PoolUse>();
  series.gauge("pool_connections", "Connections to the database", "sum", ["pool", "state"], (gauge) => {
    for (const [pool, use] of pools) {
      const { inUse, idle, waiting } = use();
      gauge.set({ pool, state: "in_use" }, inUse);
      gauge.set({ pool, state: "idle" }, idle);
      gauge.set({ pool, state: "waiting" }, waiting);
    }
  });
  return (pool, use) => void pools.set(pool, use);
}
