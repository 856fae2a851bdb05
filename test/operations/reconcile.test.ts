import { pino } from "pino";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { HOUR } from "../../src/domain/time.js";
import { changeSaleState } from "../../src/operations/change-sale-state.js";
import { reconcile } from "../../src/operations/reconcile.js";
import { listWatchedSales } from "../../src/operations/watched-sales.js";
import type { Resources } from "../../src/resources.js";
import { snapshotOf } from "../support/snapshot.js";
import { openProcess, openSale, order, type Stores, startStores, type TestSale } from "./support.js";

let stores: Stores;
let sluice: Resources;
let sale: TestSale;
/** What was logged in the test, line by line. */
let lines: string[];

beforeAll(async () => {
  stores = await startStores();
  const opened = await openProcess(stores);
  sluice = { ...opened, log: pino({ level: "error" }, { write: (line: string) => void lines.push(line) }) };
});

beforeEach(async () => {
  lines = [];
  sale = await openSale(sluice, { initial: 10 });
});

const run = async () => reconcile(sluice, await listWatchedSales(sluice), HOUR);

/** invariant → what is told of the sale; empty where nothing is. */
async function figures(of = sale): Promise<Record<string, number>> {
  const { values } = await sluice.metrics.findings.get();
  const own = values.filter(({ labels }) => labels.sale === of.id);
  return Object.fromEntries(own.map(({ labels, value }) => [String(labels.invariant), value]));
}

const logged = () => lines.map((line) => JSON.parse(line)).filter(({ saleId }) => saleId === sale.id);
const reconciledAt = async () => (await sluice.metrics.reconciledAt.get()).values[0]?.value ?? 0;

describe("the reconciler", () => {
  it("tells of each sale that is under way, by invariant, and logs nothing where all is well", async () => {
    const before = Date.now() / 1_000;
    await order(sluice, sale, "anna");
    await run();
    expect(await figures()).toEqual({ S: 0, U: 0, C: 0, T: 0 });
    expect(logged()).toEqual([]);
    expect(await reconciledAt()).toBeGreaterThanOrEqual(before);
  });

  it("names a broken sale with its first offender, and repairs nothing: not its neighbour's figures either", async () => {
    const sound = await openSale(sluice);
    await stores.client.hset(`sluice:{${sale.id}}:stock`, sale.itemId, 99);
    const before = await snapshotOf(stores.databaseUrl, stores.redis.url);
    await run();
    expect(await figures()).toEqual({ S: 0, U: 0, C: 1, T: 0 });
    expect(await figures(sound)).toEqual({ S: 0, U: 0, C: 0, T: 0 });
    expect(logged()).toMatchObject([
      {
        level: 50,
        invariant: "C",
        kind: "offers",
        count: 1,
        first: { id: sale.itemId, expected: 10, actual: "99" },
        msg: "an invariant is broken",
      },
    ]);
    expect(await snapshotOf(stores.databaseUrl, stores.redis.url)).toEqual(before);
    await stores.client.hset(`sluice:{${sale.id}}:stock`, sale.itemId, 10);
    await run();
    expect(await figures()).toMatchObject({ C: 0 });
  });

  it("never logs a buyer, whatever is wrong with his orders", async () => {
    const buyer = "a-buyer-of-that-name";
    const requestId = await order(sluice, sale, buyer);
    await stores.sql("ALTER TABLE orders DROP CONSTRAINT orders_active_while_valid");
    // A second valid order of his, which no request asked for, of more than one may have.
    await stores.sql(
      `INSERT INTO orders ("saleId", "requestId", "buyerId", "itemId", quantity, "totalMinor", currency, "payBy")
       SELECT "saleId", gen_random_uuid(), "buyerId", "itemId", 9, "totalMinor", currency, "payBy"
       FROM orders WHERE "requestId" = $1`,
      [requestId],
    );
    await run();
    expect(await figures()).toMatchObject({ U: 3 });
    const kinds = logged().map(({ kind }) => kind);
    expect(kinds).toEqual(expect.arrayContaining(["buyers_twice", "buyers_above_limit", "stories", "orders"]));
    expect(lines.join("")).not.toContain(buyer);
    expect(logged().find(({ kind }) => kind === "stories").first).toEqual({ id: expect.any(String) });
  });

  it("forgets a sale that is over", async () => {
    await stores.client.hset(`sluice:{${sale.id}}:stock`, sale.itemId, 99);
    await run();
    expect(await figures()).toMatchObject({ C: 1 });
    await changeSaleState(sluice, { saleId: sale.id, action: "close", actor: "olga" });
    await run();
    expect(await figures()).toEqual({});
  });

  it("keeps the figures of a sale that can't be checked, says so by its time, and checks the others", async () => {
    await run();
    const at = await reconciledAt();
    const other = await openSale(sluice);
    await stores.client.del(`sluice:{${sale.id}}:stock`);
    await stores.client.set(`sluice:{${sale.id}}:stock`, "no hash");
    await expect(run()).rejects.toThrow("WRONGTYPE");
    expect(await figures()).toEqual({ S: 0, U: 0, C: 0, T: 0 });
    expect(await figures(other)).toEqual({ S: 0, U: 0, C: 0, T: 0 });
    expect(await reconciledAt()).toBe(at);
    await stores.client.del(`sluice:{${sale.id}}:stock`);
  });
});
