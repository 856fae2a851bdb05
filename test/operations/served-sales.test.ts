import { beforeAll, describe, expect, it } from "vitest";
import { changeSaleState } from "../../src/operations/change-sale-state.js";
import { createServedSales } from "../../src/operations/served-sales.js";
import type { Resources } from "../../src/resources.js";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy.js";
import { waitFor } from "../support/wait.js";
import { openProcess, openSale, queueOne, type Stores, startStores, type TestSale } from "./support.js";

let stores: Stores;
let sluice: Resources;
let proxy: TcpProxy;
/** Reaches its database through a network that can be hurt. */
let remote: Resources;
let sales: TestSale[];

beforeAll(async () => {
  stores = await startStores();
  proxy = await startTcpProxy(stores.databaseUrl);
  sluice = await openProcess(stores);
  remote = await openProcess(stores, { databaseUrl: proxy.url(stores.databaseUrl) });
  sales = [await openSale(sluice), await openSale(sluice), await openSale(sluice)];
});

const newestFirst = () => sales.map(({ id }) => id).reverse();
const idsOf = async (list: Promise<readonly { id: string }[]>) => (await list).map(({ id }) => id);

describe("the sales that are served", () => {
  it("come newest first, read once for all who ask in the same two seconds", async () => {
    const list = createServedSales(sluice);
    const [first, ...others] = await Promise.all([list(), list(), list()]);
    expect(first?.map(({ id }) => id)).toEqual(newestFirst());
    for (const other of [...others, await list()]) expect(other).toBe(first);
  });

  it("stay as they were last known while the database is away or silent, and are read again when it is back", async () => {
    const list = createServedSales(remote);
    for (const hurt of ["swallowReplies", "cut"] as const) {
      const knownAt = performance.now();
      expect(await idsOf(list())).toEqual(newestFirst());
      await waitFor(() => performance.now() - knownAt > 2_500, { what: "what is known to be old" });
      await waitFor(() => isRead(remote), { what: "a connection" });
      proxy[hurt]();
      const started = performance.now();
      expect(await idsOf(list())).toEqual(newestFirst());
      expect(performance.now() - started).toBeLessThan(2_500);
      await expect(createServedSales(remote)()).rejects.toThrow();
      proxy.cut({ once: true });
      proxy.heal();
    }
    sales.push(await openSale(sluice));
    await waitFor(async () => (await list()).length === sales.length, { what: "the new sale", timeoutMs: 20_000 });
    expect(await idsOf(list())).toEqual(newestFirst());
  });

  it("lose one that is closed, unless it has requests that are undecided", async () => {
    const [idle, busy] = sales as [TestSale, TestSale];
    await queueOne(sluice, busy, "ann");
    for (const sale of [idle, busy]) {
      await changeSaleState(sluice, { saleId: sale.id, action: "close", actor: "olga" });
    }
    const left = newestFirst().filter((id) => id !== idle.id);
    expect(await idsOf(createServedSales(sluice)())).toEqual(left);
  });
});

async function isRead(resources: Resources): Promise<boolean> {
  return resources.reads.$queryRaw`SELECT 1`.then(
    () => true,
    () => false,
  );
}
