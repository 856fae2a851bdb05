import { type Aggregator, Counter, Gauge, Histogram, type Registry } from "prom-client";

/** What is over in milliseconds when all is well, and in seconds when it isn't. */
export const QUICK_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10] as const;

/** Makes the series of a registry, all named `sluice_…`. Where an API runs as several processes, their figures become one. */
export interface Series {
  /** Grows only; processes are added up. `collect` sets it right before each reading. */
  counter<Label extends string>(
    name: string,
    help: string,
    labelNames?: readonly Label[],
    collect?: (counter: Counter<Label>) => void,
  ): Counter<Label>;
  /** Seconds that something took; processes are added up. */
  histogram<Label extends string>(
    name: string,
    help: string,
    buckets: readonly number[],
    labelNames?: readonly Label[],
  ): Histogram<Label>;
  /** `processes` says what several of them make: nobody else can know. */
  gauge<Label extends string>(
    name: string,
    help: string,
    processes: Aggregator,
    labelNames?: readonly Label[],
    collect?: (gauge: Gauge<Label>) => void,
  ): Gauge<Label>;
}

export function defineSeries(registry: Registry): Series {
  const common = <Label extends string>(name: string, help: string, labelNames: readonly Label[] = []) => ({
    name: `sluice_${name}`,
    help,
    labelNames,
    registers: [registry],
  });
  return {
    counter: (name, help, labelNames, collect) =>
      new Counter({
        ...common(name, help, labelNames),
        aggregator: "sum",
        ...(collect && {
          collect() {
            collect(this);
          },
        }),
      }),
    histogram: (name, help, buckets, labelNames) =>
      new Histogram({ ...common(name, help, labelNames), aggregator: "sum", buckets: [...buckets] }),
    gauge: (name, help, processes, labelNames, collect) =>
      new Gauge({
        ...common(name, help, labelNames),
        aggregator: processes,
        ...(collect && {
          collect() {
            collect(this);
          },
        }),
      }),
  };
}

/** A gauge without labels tells a nought from the start, also where nobody ever sets it. */
export function withoutNought(gauge: Gauge): Gauge {
  gauge.remove();
  return gauge;
}
