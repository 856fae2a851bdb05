import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

/** Everything the processes count. Labels are outcomes, sales and stages; never a buyer. */
export interface Metrics {
  readonly registry: Registry;
  /** answers of reserve, by outcome */
  readonly reservations: Counter<"outcome">;
  /** requests made durable, and those that were refused by the fence */
  readonly journaled: Counter<"outcome">;
  /** seconds that one group of requests took to become durable */
  readonly journalSeconds: Histogram;
  /** requests decided by the order writer, by outcome */
  readonly decided: Counter<"outcome">;
  readonly writeSeconds: Histogram;
  /** loads of a sale into Redis, by what asked for them and how they ended */
  readonly loads: Counter<"reason" | "outcome">;
  readonly loadSeconds: Histogram;
  /** what the two stores disagreed about, as it was met */
  readonly drift: Counter<"stage">;
  /** requests that the forwarder journaled, queued again or advanced */
  readonly forwarded: Counter<"outcome">;
  /** request events, by how they ended */
  readonly events: Counter<"outcome">;
  /** 1 while a dependency answers */
  readonly dependencyUp: Gauge<"dependency">;
}

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

export function createMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const counter = <Label extends string>(name: string, help: string, labelNames: Label[]) =>
    new Counter({ name: `sluice_${name}`, help, labelNames, registers: [registry] });
  const histogram = (name: string, help: string) =>
    new Histogram({ name: `sluice_${name}`, help, buckets: SECONDS, registers: [registry] });
  return {
    registry,
    reservations: counter("reservations_total", "Answers of reserve", ["outcome"]),
    journaled: counter("journaled_total", "Accepted requests on their way into the database", ["outcome"]),
    journalSeconds: histogram("journal_seconds", "Time one group of requests took to become durable"),
    decided: counter("decided_total", "Requests decided by the order writer", ["outcome"]),
    writeSeconds: histogram("write_seconds", "Time one batch of orders took to be written"),
    loads: counter("loads_total", "Loads of a sale into Redis", ["reason", "outcome"]),
    loadSeconds: histogram("load_seconds", "Time a load of a sale took"),
    drift: counter("drift_total", "Disagreements of the stores, as they were met", ["stage"]),
    forwarded: counter("forwarded_total", "Requests that the forwarder helped on", ["outcome"]),
    events: counter("request_events_total", "Request events carried to Redis", ["outcome"]),
    dependencyUp: new Gauge({
      name: "sluice_dependency_up",
      help: "1 while a dependency answers",
      labelNames: ["dependency"],
      registers: [registry],
    }),
  };
}
