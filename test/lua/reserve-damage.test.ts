import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { SaleKeys } from "../../src/redis/keys.js";
import {
  accepted,
  type Bench,
  garble,
  loadAgain,
  NO_COUNTS,
  openSale,
  replace,
  requestId,
  reserve,
  startBench,
} from "./support.js";

let bench: Bench;
beforeAll(async () => {
  bench = await startBench();
});
beforeEach(() => bench.clear());

const TOO_LONG = ["9".repeat(16), String(2 ** 53), "1".repeat(17), "9".repeat(400)];

describe("stock that is no count makes its item unavailable, and changes not one key", () => {
  it.each([...NO_COUNTS, ...TOO_LONG])("%j", async (value) => {
    const sale = await openSale(bench, { stock: { shirt: 10, mug: 10 } });
    await bench.client.hset(sale.keys.stock, "shirt", value);
    const reply = await bench.untouchedBy(() => reserve(bench.link, sale, 1));
    expect(reply).toEqual({ kind: "damaged", key: sale.keys.stock, saleWide: false });
    // Its neighbour sells on.
    await accepted(bench.link, sale, 1, { itemId: "mug" });
  });

  it.each([
    {
      what: "its field is missing",
      breakIt: (keys: SaleKeys) => bench.client.hdel(keys.stock, "shirt"),
      saleWide: false,
    },
    { what: "the whole key is missing", breakIt: (keys: SaleKeys) => bench.client.del(keys.stock), saleWide: true },
  ])("$what", async ({ breakIt, saleWide }) => {
    const sale = await openSale(bench, { stock: { shirt: 10, mug: 10 } });
    await breakIt(sale.keys);
    const reply = await bench.untouchedBy(() => reserve(bench.link, sale, 1));
    expect(reply).toEqual({ kind: "damaged", key: sale.keys.stock, saleWide });
  });

  it("and the largest number that is still exact sells", async () => {
    const sale = await openSale(bench, { stock: { shirt: Number.MAX_SAFE_INTEGER } });
    await accepted(bench.link, sale, 1);
    expect(await bench.client.hget(sale.keys.stock, "shirt")).toBe(String(Number.MAX_SAFE_INTEGER - 1));
  });
});

describe.each(["sale", "stock", "holders", "pending", "request"] as const)("the %s key", (name) => {
  const keyOf = (keys: SaleKeys) => (name === "request" ? keys.request(requestId(1)) : keys[name]);

  it.each(["string", "list", "set", "stream", name === "pending" ? "hash" : "zset"])(
    "as a %s takes nothing, and changes not one key",
    async (type) => {
      const sale = await openSale(bench);
      const key = keyOf(sale.keys);
      await replace(bench, key, type);
      const reply = await bench.untouchedBy(() => reserve(bench.link, sale, 1));
      expect(reply).toEqual({ kind: "damaged", key, saleWide: true });
    },
  );
});

it("a repeat is not answered from a queue that is none, either", async () => {
  const sale = await openSale(bench);
  await accepted(bench.link, sale, 1);
  await replace(bench, sale.keys.pending, "string");
  const reply = await bench.untouchedBy(() => reserve(bench.link, sale, 1));
  expect(reply).toEqual({ kind: "damaged", key: sale.keys.pending, saleWide: true });
});

it("holders that were deleted are not taken for a sale that nobody has bought in", async () => {
  const sale = await openSale(bench);
  await accepted(bench.link, sale, 1);
  await bench.client.del(sale.keys.holders);
  const again = { buyerId: "buyer-1" };
  const reply = await bench.untouchedBy(() => reserve(bench.link, sale, 2, again));
  expect(reply).toEqual({ kind: "damaged", key: sale.keys.holders, saleWide: true });
});

it("a sale of which one key is left, or one is missing, sells nothing", async () => {
  for (const name of ["sale", "stock", "holders", "pending"] as const) {
    const sale = await openSale(bench);
    await bench.client.del(sale.keys[name]);
    const reply = await bench.untouchedBy(() => reserve(bench.link, sale, 1));
    expect(reply.kind, `without ${name}`).toBe(name === "sale" ? "not_loaded" : "damaged");
  }
});

describe("a sale with a value that is none", () => {
  const counted = ["epoch", "seq", "opensAt", "closesAt", "forgetAt", "maxPerBuyer", "backlogLimit", "stateVersion"];
  const garbled = counted.flatMap((field) => [...NO_COUNTS, String(2 ** 53), null].map((value) => ({ field, value })));

  it.each([...garbled, ...["", "OPENED", "open", "DRAFT", null].map((value) => ({ field: "state", value }))])(
    "takes nothing and changes not one key: $field $value",
    async ({ field, value }) => {
      const sale = await openSale(bench);
      await garble(bench, sale.keys.sale, field, value);
      const reply = await bench.untouchedBy(() => reserve(bench.link, sale, 1));
      expect(reply).toEqual({ kind: "damaged", key: sale.keys.sale, saleWide: true });
    },
  );

  it.each(["phase", "runId"].flatMap((field) => ["", "x", null].map((value) => ({ field, value }))))(
    "is not loaded: $field $value",
    async ({ field, value }) => {
      const sale = await openSale(bench);
      await garble(bench, sale.keys.sale, field, value);
      expect(await bench.untouchedBy(() => reserve(bench.link, sale, 1))).toEqual({ kind: "not_loaded" });
    },
  );

  it.each([...NO_COUNTS, null])("in an item's generation makes the item unavailable: %j", async (value) => {
    const sale = await openSale(bench, { stock: { shirt: 10, mug: 10 } });
    await garble(bench, sale.keys.sale, "g:shirt", value);
    const reply = await bench.untouchedBy(() => reserve(bench.link, sale, 1));
    expect(reply).toMatchObject({ kind: "damaged", saleWide: false });
    await accepted(bench.link, sale, 1, { itemId: "mug" });
  });

  it("sells again once it is loaded again, whatever it was", async () => {
    const sale = await openSale(bench);
    await bench.client.hset(sale.keys.sale, { seq: "x", closesAt: "x", maxPerBuyer: "x", "g:shirt": "x", state: "x" });
    await loadAgain(bench.link, sale, { epoch: 2 });
    await accepted(bench.link, sale, 1);
  });
});

describe("a known request with a value that is none", () => {
  it.each([
    ...["seq", "at"].flatMap((field) => ["", "x", "-1", null].map((value) => ({ field, value }))),
    { field: "stage", value: null },
    { field: "stage", value: "SHIPPED" },
  ])("is damaged, not answered with something made up: $field $value", async ({ field, value }) => {
    const sale = await openSale(bench);
    await accepted(bench.link, sale, 1);
    const key = sale.keys.request(requestId(1));
    await garble(bench, key, field, value);
    const reply = await bench.untouchedBy(() => reserve(bench.link, sale, 1));
    expect(reply).toEqual({ kind: "damaged", key, saleWide: true });
  });

  it("that is lost whole is not taken for another's reservation, though the buyer still holds it", async () => {
    const sale = await openSale(bench);
    await accepted(bench.link, sale, 1);
    const key = sale.keys.request(requestId(1));
    await bench.client.del(key);
    const reply = await bench.untouchedBy(() => reserve(bench.link, sale, 1));
    expect(reply).toEqual({ kind: "damaged", key, saleWide: true });
  });

  it.each(["buyer", "item", "quantity"])("is a conflict: %s", async (field) => {
    const sale = await openSale(bench);
    await accepted(bench.link, sale, 1);
    await garble(bench, sale.keys.request(requestId(1)), field, null);
    expect(await bench.untouchedBy(() => reserve(bench.link, sale, 1))).toEqual({ kind: "conflict" });
  });
});
