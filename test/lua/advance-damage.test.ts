import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Advance, callAdvance, toStage } from "../../src/redis/advance.js";
import type { SaleKeys } from "../../src/redis/keys.js";
import {
  type Bench,
  garble,
  loadRequest,
  NO_COUNTS,
  openSale,
  replace,
  requestId,
  startBench,
  type TestSale,
} from "./support.js";

let bench: Bench;
beforeAll(async () => {
  bench = await startBench();
});
beforeEach(() => bench.clear());

/** Two requests: a sound one, and the one that comes upon the damage when the first could have been written already. */
const openSaleOfTwo = () =>
  openSale(bench, { stock: { mug: 0, shirt: 0 }, requests: [loadRequest(1, { itemId: "mug" }), loadRequest(2)] });
const givesBack = (number: number): Advance => ({ ...toStage(requestId(number), "FAILED"), units: 1, epoch: 1 });
const bothGiveBack = (sale: TestSale) => callAdvance(bench.link, sale.id, [givesBack(1), givesBack(2)]);

describe.each(["sale", "stock", "holders", "pending", "request"] as const)("the %s key", (name) => {
  const keyOf = (keys: SaleKeys) => (name === "request" ? keys.request(requestId(2)) : keys[name]);

  it.each(["string", "list", "set", "stream", name === "pending" ? "hash" : "zset"])(
    "as a %s: not one key is changed, not even for a sound request in front",
    async (type) => {
      const sale = await openSaleOfTwo();
      await replace(bench, keyOf(sale.keys), type);
      const reply = await bench.untouchedBy(() => bothGiveBack(sale));
      expect(reply).toEqual({ kind: "damaged", key: keyOf(sale.keys) });
    },
  );
});

describe("a value that is none changes not one key", () => {
  it.each([...NO_COUNTS, String(2 ** 53), null])("stock: %j", async (value) => {
    const sale = await openSaleOfTwo();
    await garble(bench, sale.keys.stock, "shirt", value);
    const reply = await bench.untouchedBy(() => bothGiveBack(sale));
    expect(reply).toEqual({ kind: "damaged", key: sale.keys.stock });
  });

  it.each([...NO_COUNTS, null])("an item's generation: %j", async (value) => {
    const sale = await openSaleOfTwo();
    await garble(bench, sale.keys.sale, "g:shirt", value);
    const reply = await bench.untouchedBy(() => bothGiveBack(sale));
    expect(reply).toEqual({ kind: "damaged", key: sale.keys.sale });
  });

  it.each(["epoch", "seq"].flatMap((field) => [...NO_COUNTS, null].map((value) => ({ field, value }))))(
    "the sale's $field: $value, which asks for a load",
    async ({ field, value }) => {
      const sale = await openSaleOfTwo();
      await garble(bench, sale.keys.sale, field, value);
      expect(await bench.untouchedBy(() => bothGiveBack(sale))).toEqual({ kind: "damaged", key: sale.keys.sale });
    },
  );

  it.each(["item", "buyer"])("a request without its %s", async (field) => {
    const sale = await openSaleOfTwo();
    const key = sale.keys.request(requestId(2));
    await garble(bench, key, field, null);
    expect(await bench.untouchedBy(() => bothGiveBack(sale))).toEqual({ kind: "damaged", key });
  });

  it.each(["rank", "epoch"].flatMap((field) => [...NO_COUNTS, null].map((value) => ({ field, value }))))(
    "a request's $field: $value, which makes it unknown",
    async ({ field, value }) => {
      const sale = await openSaleOfTwo();
      await garble(bench, sale.keys.request(requestId(2)), field, value);
      const call = () => callAdvance(bench.link, sale.id, [givesBack(2)]);
      expect(await bench.untouchedBy(call)).toEqual({ kind: "ok", results: ["unknown"] });
    },
  );
});

it("a request that gives nothing back goes forward, whatever its item's stock is", async () => {
  const sale = await openSaleOfTwo();
  await garble(bench, sale.keys.stock, "shirt", "x");
  const ordered = [toStage(requestId(2), "ORDERED")];
  expect(await callAdvance(bench.link, sale.id, ordered)).toEqual({ kind: "ok", results: ["applied"] });
  expect(await bench.client.hget(sale.keys.stock, "shirt")).toBe("x");
});
