/** What a worker writes under a ceiling, as a process that takes jobs from a queue. */
import { beforeAll, expect, it } from "vitest";
import type { Resources } from "../../src/resources.js";
import { environmentOf, openProcess, openSale, queueMany, type Stores, startStores } from "../operations/support.js";
import { spawnNode } from "../support/processes.js";
import { waitFor } from "../support/wait.js";

let stores: Stores;
let inside: Resources;

beforeAll(async () => {
  stores = await startStores();
  inside = await openProcess(stores);
});

it("a worker that may write 40 orders a second writes two at a time, for each of its sales, and all of them in the end", async () => {
  const sales = [await openSale(inside, { initial: 50 }), await openSale(inside, { initial: 50 })];
  for (const sale of sales) await queueMany(inside, sale, 40);
  const worker = await spawnNode(
    "workers/main.ts",
    environmentOf(stores, { tuning: { writer: { ordersPerSecond: 40 } } }),
  );
  await waitFor(async () => (await stores.sql("SELECT 1 FROM orders")).length === 80, {
    what: "all the orders",
    timeoutMs: 30_000,
  });
  worker.kill("SIGTERM");
  await worker.exited;
  const batches = await stores.sql<{ orders: number }>(
    'SELECT count(*)::int AS orders FROM orders GROUP BY "saleId", xmin::text',
  );
  expect(Math.max(...batches.map(({ orders }) => orders))).toBeLessThanOrEqual(2);
  for (const sale of sales) await stores.expectSound(sale);
});
