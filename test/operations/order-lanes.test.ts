import { beforeAll, expect, it } from "vitest";
import { orderIdOf } from "../../src/domain/ids.js";
import { cancelOrder } from "../../src/operations/cancel.js";
import { pay } from "../../src/operations/pay.js";
import type { Resources } from "../../src/resources.js";
import { waitFor } from "../support/wait.js";
import { transactionOnTheSide } from "./side.js";
import { ask, openProcess, openSale, order, type Stores, startStores } from "./support.js";

let stores: Stores;
let sluice: Resources;

beforeAll(async () => {
  stores = await startStores();
  sluice = await openProcess(stores);
});

/** How a pool of the process is used, by its own figures. */
async function poolUse(pool: string): Promise<Record<string, number>> {
  const text = await sluice.metrics.registry.metrics();
  const lines = [...text.matchAll(/^sluice_pool_connections\{pool="(\w+)",state="(\w+)"\} (\d+)$/gm)];
  return Object.fromEntries(lines.filter(([, name]) => name === pool).map(([, , state, n]) => [state, Number(n)]));
}

it("payments of a sale whose stock somebody keeps locked take nothing from those who buy or pay in another one", async () => {
  const [stuck, free] = [await openSale(sluice, { initial: 30 }), await openSale(sluice, { initial: 30 })];
  const orders = [];
  for (let buyer = 0; buyer < 12; buyer += 1) orders.push(await order(sluice, stuck, `buyer-${buyer}`));
  const other = await order(sluice, free, "anna");
  const lock = 'SELECT 1 FROM sale_items WHERE "saleId" = $1 FOR UPDATE';
  const side = await transactionOnTheSide(stores, lock, [stuck.id]);
  const paying = orders.map((requestId) =>
    pay(sluice, { orderId: orderIdOf(stuck.id, requestId), paymentRef: `p_${requestId}`, amountMinor: 2_500 }),
  );
  const paid = Promise.allSettled(paying);
  await waitFor(async () => ((await poolUse("orders")).in_use ?? 0) >= 3, { what: "payments that wait" });
  expect(await poolUse("orders")).toMatchObject({ in_use: 3, waiting: 0 });
  expect(await poolUse("sale")).toMatchObject({ in_use: 0, waiting: 0 });

  expect((await ask(sluice, free, "ben")).kind).toBe("queued");
  const orderId = orderIdOf(free.id, other);
  expect(await pay(sluice, { orderId, paymentRef: `p_${other}`, amountMinor: 2_500 })).toMatchObject({
    outcome: "PAID",
  });
  await side.rollback();

  // Who gave up meanwhile is told to send the same again, and whoever didn't has paid.
  for (const [at, answer] of (await paid).entries()) {
    const requestId = orders[at] ?? "";
    const report = { orderId: orderIdOf(stuck.id, requestId), paymentRef: `p_${requestId}`, amountMinor: 2_500 };
    const wanted = answer.status === "fulfilled" ? "ALREADY_PAID" : "PAID";
    expect(await pay(sluice, report)).toMatchObject({ outcome: wanted });
  }
  await stores.expectSound(stuck);
});

it("an order whose rows somebody keeps locked is given up within some seconds, with nothing done", async () => {
  const sale = await openSale(sluice, { initial: 3 });
  const requestId = await order(sluice, sale, "anna");
  const lock = 'SELECT 1 FROM sale_items WHERE "saleId" = $1 FOR UPDATE';
  const side = await transactionOnTheSide(stores, lock, [sale.id]);
  const orderId = orderIdOf(sale.id, requestId);
  const started = performance.now();
  await expect(cancelOrder(sluice, { orderId, by: "buyer", buyerId: "anna" })).rejects.toThrow();
  // Five lock timeouts of half a second and the pauses between them were 5 s. Generous, for a machine that is busy.
  expect(performance.now() - started).toBeLessThan(4_000);
  await side.rollback();
  expect(await cancelOrder(sluice, { orderId, by: "buyer", buyerId: "anna" })).toMatchObject({ status: "CANCELLED" });
  await stores.expectSound(sale);
});

it("a repeat whose connection is lost is told from the first report", async () => {
  const sale = await openSale(sluice, { initial: 3 });
  const requestId = await order(sluice, sale, "anna");
  const report = { orderId: orderIdOf(sale.id, requestId), paymentRef: `p_${requestId}`, amountMinor: 2_500 };
  expect(await pay(sluice, report)).toMatchObject({ outcome: "PAID" });
  const fence = "SELECT pg_advisory_xact_lock(hashtextextended('sluice:fence:' || $1, 0))";
  const side = await transactionOnTheSide(stores, fence, [sale.id]);
  const repeating = pay(sluice, report);
  const cut = () =>
    stores.sql(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%advisory_xact_lock_shared%'`,
    );
  await waitFor(async () => (await cut()).length > 0, { what: "the repeat to wait, and to lose its connection" });
  expect(await repeating).toMatchObject({ outcome: "ALREADY_PAID" });
  await side.rollback();
});
