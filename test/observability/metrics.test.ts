import { AggregatorRegistry } from "prom-client";
import { describe, expect, it } from "vitest";
import { createMetrics, type Metrics } from "../../src/observability/metrics.js";

/** What a process tells, without what Node tells of itself. */
async function told(metrics: Pick<Metrics, "registry">, name: string): Promise<string[]> {
  const text = await metrics.registry.metrics();
  return text.split("\n").filter((line) => line.startsWith(name));
}

describe("what is counted by sale", () => {
  it("is kept of the 200 sales that were counted last, however many there are", async () => {
    const metrics = createMetrics("worker");
    for (let sale = 0; sale < 200; sale += 1) metrics.decided.add(`sale-${sale}`, "ordered");
    metrics.decided.add("sale-0", "ordered");
    metrics.decided.add("one-more", "ordered");

    const lines = await told(metrics, "sluice_decided_total{");
    expect(lines).toHaveLength(200);
    expect(lines).toContain('sluice_decided_total{sale="sale-0",outcome="ordered"} 2');
    expect(lines).toContain('sluice_decided_total{sale="one-more",outcome="ordered"} 1');
    expect(lines.join()).not.toContain('"sale-1"');
    expect(await told(metrics, "sluice_decided_total{")).toEqual(lines);
  });

  it("is forgotten of all that are not to be kept", async () => {
    const metrics = createMetrics("worker");
    for (const sale of ["a", "b", "c"]) metrics.decided.add(sale, "ordered");
    metrics.decided.keepOnly(["b", "never-counted"]);
    expect(await told(metrics, "sluice_decided_total{")).toEqual([
      'sluice_decided_total{sale="b",outcome="ordered"} 1',
    ]);
  });
});

it("what was never measured here is not told, as if it were none", async () => {
  const metrics = createMetrics("api");
  expect(await told(metrics, "sluice_refunds_due")).toEqual([]);
  expect(await told(metrics, "sluice_oldest_refund_due_age_seconds")).toEqual([]);
  metrics.sales.setDueRefunds({ count: 0, oldestSeconds: 0 });
  expect(await told(metrics, "sluice_refunds_due")).toEqual(["sluice_refunds_due 0"]);
});

describe("several processes", () => {
  it("are added up where they count, and one where they tell the same; a store is up where it is up for all", async () => {
    const processes = [createMetrics("api"), createMetrics("api")];
    for (const [at, metrics] of processes.entries()) {
      metrics.reserves.begin()("a-sale", "queued");
      metrics.reserves.begin();
      metrics.subscriptions.inc({ field: "saleUpdates", transport: "sse" });
      metrics.watchPool("sale", () => ({ inUse: 2, idle: 1, waiting: at }));
      metrics.dependencyUp.set({ dependency: "redis" }, at);
      metrics.dependencyUp.set({ dependency: "database" }, 1);
      metrics.sales.setInRedis(new Map([["a-sale", { pending: 5 + at, remaining: 10 }]]));
      metrics.sales.setJobs(new Map([["a-sale", { waiting: 3, active: 1 }]]));
    }
    const snapshots = await Promise.all(processes.map(({ registry }) => registry.getMetricsAsJSON()));
    const registry = AggregatorRegistry.aggregate(snapshots);
    const lines = (await registry.metrics()).split("\n");
    for (const line of [
      'sluice_reservations_total{sale="a-sale",outcome="queued"} 2',
      'sluice_reserve_duration_seconds_count{outcome="queued"} 2',
      "sluice_reserves_in_flight 2",
      'sluice_subscriptions_open{field="saleUpdates",transport="sse"} 2',
      'sluice_pool_connections{pool="sale",state="in_use"} 4',
      'sluice_pool_connections{pool="sale",state="waiting"} 1',
      'sluice_dependency_up{dependency="redis"} 0',
      'sluice_dependency_up{dependency="database"} 1',
      'sluice_pending_requests{sale="a-sale"} 6',
      'sluice_remaining_units{sale="a-sale"} 10',
      'sluice_queue_jobs{sale="a-sale",state="waiting"} 3',
    ]) {
      expect(lines).toContain(line);
    }
    expect(lines.filter((line) => line.startsWith("sluice_build_info{"))).toEqual([
      expect.stringMatching(/^sluice_build_info\{process="api",version="\d+\.\d+\.\d+",node="v\d+\..*"\} 1$/),
    ]);
  });
});

describe("what has not happened yet", () => {
  it("is told of drift, so that the first one is seen as growth", async () => {
    const lines = await told(createMetrics("worker"), "sluice_drift_total{");
    expect(lines).toEqual(["drift", "damaged", "load"].map((stage) => `sluice_drift_total{stage="${stage}"} 0`));
  });
});
