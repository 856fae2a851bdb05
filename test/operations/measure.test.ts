import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { orderIdOf } from "../../src/domain/ids.js";
import { measureDatabase, measureRedis } from "../../src/operations/measure.js";
import { pay } from "../../src/operations/pay.js";
import { listWatchedSales, type WatchedSale } from "../../src/operations/watched-sales.js";
import { saleKeys } from "../../src/redis/keys.js";
import type { Resources } from "../../src/resources.js";
import {
  letPass,
  openProcess,
  openSale,
  order,
  queueMany,
  type Stores,
  startStores,
  type TestSale,
} from "./support.js";

let stores: Stores;
let sluice: Resources;
let [sound, other]: TestSale[] = [];

beforeAll(async () => {
  stores = await startStores();
  sluice = await openProcess(stores);
});

beforeEach(async () => {
  sound = await openSale(sluice, { initial: 10 });
  other = await openSale(sluice, { initial: 10 });
  await queueMany(sluice, sound, 3);
  await queueMany(sluice, other, 2);
});

/** The values of a sale's series, by name and state. */
async function seriesOf(sale: TestSale | undefined): Promise<Record<string, number>> {
  const text = await sluice.metrics.registry.metrics();
  const lines = [...text.matchAll(/^sluice_(\w+)\{sale="([^"]+)"(?:,state="(\w+)")?\} (\S+)$/gm)];
  const own = lines.filter(([, , id]) => id === sale?.id);
  return Object.fromEntries(own.map(([, name, , state, value]) => [state ? `${name} ${state}` : name, Number(value)]));
}

const IN_REDIS = { pending_requests: 3, remaining_units: 7 };
const JOBS = { "queue_jobs waiting": 3, "queue_jobs active": 0, "queue_jobs delayed": 0, "queue_jobs failed": 0 };

describe("measuring Redis", () => {
  it("leaves out a sale whose keys are of no use, and not the others", async () => {
    await stores.client.del(saleKeys(other?.id ?? "").pending);
    await stores.client.set(`sluice:{${other?.id}}:q:orders:delayed`, "not what it was");
    await expect(measureRedis(sluice, await listWatchedSales(sluice))).rejects.toThrow("WRONGTYPE");

    expect(await seriesOf(sound)).toEqual({ ...IN_REDIS, ...JOBS });
    expect(await seriesOf(other)).toEqual({});
  });

  it("gives no figures of a sale that Redis doesn't have", async () => {
    await stores.client.flushall();
    await measureRedis(sluice, await listWatchedSales(sluice));
    const { pending_requests, remaining_units } = await seriesOf(sound);
    expect([pending_requests, remaining_units]).toEqual([undefined, undefined]);
  });

  it("asks nothing for no sales, and tells none any more", async () => {
    await measureRedis(sluice, await listWatchedSales(sluice));
    await measureDatabase(sluice, await listWatchedSales(sluice));
    expect(await seriesOf(sound)).toMatchObject({ ...IN_REDIS, ...JOBS, undecided_requests: 3, overdue_requests: 0 });
    await measureRedis(sluice, []);
    await measureDatabase(sluice, []);
    expect(await seriesOf(sound)).toEqual({});
  });
});

it("tells how many orders wait to be paid, how late the last of them is, and what money is to be given back", async () => {
  const own = await openSale(sluice, { initial: 10 });
  const [late] = [await order(sluice, own, "anna"), await order(sluice, own, "bert")];
  await letPass(stores, own, [late]);
  await pay(sluice, { orderId: orderIdOf(own.id, late), paymentRef: `late_${late}`, amountMinor: 2_500 });
  await measureDatabase(sluice, await listWatchedSales(sluice));
  const { unpaid_orders, unpaid_overdue_seconds } = await seriesOf(own);
  expect(unpaid_orders).toBe(2);
  expect(unpaid_overdue_seconds).toBeGreaterThanOrEqual(1);
  expect(await seriesOf(sound)).toMatchObject({ unpaid_orders: 0, unpaid_overdue_seconds: 0 });
  const text = await sluice.metrics.registry.metrics();
  expect(text).toMatch(/^sluice_refunds_due 1$/m);
  expect(text).toMatch(/^sluice_payments_total\{outcome="refund_due"\} 1$/m);
});

it("measures 500 sales at the most: those whose queue is served, then those that closed last", async () => {
  const [served] = await listWatchedSales(sluice);
  if (!served) throw new Error("no sale is watched");
  const closed = (at: number): WatchedSale => ({
    ...served,
    id: `closed-${at}`,
    served: false,
    closesAt: new Date(at),
  });
  const many = Array.from({ length: 600 }, (_, at) => closed(at));
  await measureDatabase(sluice, [...many, served]);

  const text = await sluice.metrics.registry.metrics();
  const told = [...text.matchAll(/^sluice_undecided_requests\{sale="([^"]+)"\}/gm)].map(([, id]) => id);
  expect(told).toHaveLength(500);
  expect(told).toContain(served.id);
  expect(told).toContain("closed-599");
  expect(told).not.toContain("closed-100");
});
