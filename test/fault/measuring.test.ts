import { createServer } from "node:net";
import { afterEach, beforeAll, describe, expect, test } from "vitest";
import { createTestDatabase } from "../support/database.js";
import { type Scrape, scrapeApi, scrapeWorker } from "../support/metrics.js";
import { startTestRedis } from "../support/redis.js";
import { prepareSluice, reserve, type TestSluice } from "../support/sluice.js";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy.js";
import { atEndOfFile } from "../support/test-file.js";
import { waitFor } from "../support/wait.js";

let sluice: TestSluice;
let toDatabase: TcpProxy;

beforeAll(async () => {
  const [redis, database] = await Promise.all([startTestRedis(), createTestDatabase()]);
  toDatabase = await startTcpProxy(database.url);
  sluice = await prepareSluice({
    stores: { redis, database },
    databaseUrl: toDatabase.url(database.url),
    env: { SLUICE_TUNING: '{"loops":{"measureMs":100}}' },
  });
});

afterEach(async () => {
  sluice.redis.thaw();
  toDatabase.heal();
  await sluice.endProcesses();
});

describe.each([
  {
    what: "Redis frozen",
    store: "redis",
    other: "database",
    away: () => sluice.redis.freeze(),
    back: () => sluice.redis.thaw(),
  },
  {
    what: "a database that is silent",
    store: "database",
    other: "redis",
    away: () => toDatabase.blackhole(),
    back: () => toDatabase.heal(),
  },
  {
    what: "a database that refuses",
    store: "database",
    other: "redis",
    away: () => toDatabase.cut(),
    back: () => toDatabase.heal(),
  },
])("with $what", ({ store, other, away, back }) => {
  test("scrapes are answered in a second, say so, and keep telling what the other store says", async () => {
    const api = await sluice.startApi();
    const worker = await sluice.startWorker({ METRICS_PORT: "0" });
    const sale = await sluice.createSale(api, { initial: [7] });
    const figuresOf = { api: () => scrapeApi(sluice, api), worker: () => scrapeWorker(worker) };
    const until = (process: "api" | "worker", looksSo: (figures: Scrape) => boolean, what: string) =>
      waitFor(
        async () => {
          const figures = await figuresOf[process]();
          return looksSo(figures) ? figures : null;
        },
        { what, timeoutMs: 40_000 },
      );
    const isUp = (figures: Scrape) => figures.value("sluice_dependency_up", { dependency: store }) === 1;
    const measured = (figures: Scrape, which: string) =>
      figures.value("sluice_measured_timestamp_seconds", { store: which }) ?? 0;

    await until("api", isUp, `${store} to be up for the API`);
    await until(
      "worker",
      (figures) =>
        isUp(figures) &&
        figures.value("sluice_remaining_units", { sale: sale.id }) === 7 &&
        figures.value("sluice_undecided_requests", { sale: sale.id }) === 0,
      "the sale to be measured in both stores",
    );
    away();
    await until("api", (figures) => !isUp(figures), `${store} to be away for the API`);
    const gone = await until("worker", (figures) => !isUp(figures), `${store} to be away for the worker`);
    expect(gone.value("sluice_dependency_up", { dependency: other })).toBe(1);
    await until(
      "worker",
      (figures) => measured(figures, other) - measured(figures, store) > 2,
      "the other store's figures to be newer by seconds",
    );
    // What was measured last stands, with the time at which it was.
    const stale = await figuresOf.worker();
    expect(stale.value("sluice_remaining_units", { sale: sale.id })).toBe(7);
    expect(stale.value("sluice_undecided_requests", { sale: sale.id })).toBe(0);
    for (const scrape of [figuresOf.api, figuresOf.worker]) {
      const times: number[] = [];
      for (let at = 0; at < 5; at += 1) times.push((await scrape()).tookMs);
      // One can be late on a busy machine; one that waited for a store would be so every time.
      expect(times.sort((a, b) => a - b)[2]).toBeLessThan(1_000);
    }
    back();
    const before = measured(stale, store);
    await until("worker", (figures) => isUp(figures) && measured(figures, store) > before, "new figures");
    await until("api", isUp, `${store} to be back for the API`);
  }, 120_000);
});

test("a METRICS_PORT that is taken is told in one line, and the worker writes orders all the same", async () => {
  const other = createServer();
  await new Promise<void>((listening) => other.listen(0, "127.0.0.1", listening));
  atEndOfFile(() => other.close());
  const { port } = other.address() as { port: number };

  const api = await sluice.startApi();
  const worker = await sluice.startWorker({ METRICS_PORT: String(port) });
  const [line = ""] = await worker.waitForLine(/.*METRICS_PORT.*/);
  expect(JSON.parse(line)).toMatchObject({ level: "error", port, why: expect.stringContaining("EADDRINUSE") });
  expect(worker.lines.filter((said) => said.includes("EADDRINUSE"))).toHaveLength(1);

  const sale = await sluice.createSale(api);
  const token = await sluice.token("buyer", "someone");
  await waitFor(async () => (await reserve(api, token, sale)).data?.reserve.reservation?.status === "SUCCESS", {
    what: "an order",
    timeoutMs: 30_000,
  });
}, 60_000);
