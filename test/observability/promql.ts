/** Expressions in Prometheus' language, and the metrics that there are. */
import type { Metric, MetricType } from "prom-client";
import { createMetrics } from "../../src/observability/metrics.js";

/** A metric as a process tells it. */
interface Known {
  readonly type: string;
  readonly labels: readonly string[];
  readonly processes: string;
}

/** Everything that both kinds of process tell, by name. */
export const metrics = new Map<string, Known>(
  (["api", "worker"] as const)
    .flatMap((process) => createMetrics(process).registry.getMetricsAsArray())
    .map((metric) => {
      const { name, type, labelNames = [], aggregator } = metric as unknown as Metric & Described;
      return [name, { type: String(type), labels: [...labelNames].sort(), processes: aggregator }] as const;
    }),
);
interface Described {
  readonly name: string;
  readonly type: MetricType;
  readonly labelNames?: readonly string[];
  readonly aggregator: string;
}

/** What Prometheus adds by itself, and a histogram. */
export const TARGET_LABELS: readonly string[] = ["instance", "job", "le"];

/** The metrics that an expression asks for; a histogram by its own name. */
export function metricsIn(expr: string): string[] {
  const names = [...expr.matchAll(/\b(?:sluice|nodejs|process)_[a-z0-9_]+/g)].map(([name]) => name);
  return names.map((name) => {
    const base = name.replace(/_(bucket|sum|count)$/, "");
    return metrics.get(base)?.type === "histogram" ? base : name;
  });
}

/** The labels that an expression selects, groups or joins by. */
export function labelsIn(expr: string): string[] {
  const selectors = [...expr.matchAll(/\{([^}]*)\}/g)].flatMap(([, inside = ""]) =>
    [...inside.matchAll(/([a-z_]+) *(?:=~|!~|!=|=)/g)].map(([, label = ""]) => label),
  );
  const lists = [...expr.matchAll(/\b(?:by|on|group_left|without) *\(([^)]*)\)/g)].flatMap(([, inside = ""]) =>
    inside.split(","),
  );
  const values = [...expr.matchAll(/label_values\([a-z_]+, *([a-z_]+)\)/g)].map(([, label = ""]) => label);
  return [...selectors, ...lists.map((label) => label.trim()), ...values];
}
