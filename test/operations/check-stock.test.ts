import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { orderIdOf } from "../../src/domain/ids.js";
import { cancelOrder } from "../../src/operations/cancel.js";
import { checkSale, type FindingKind, type SaleCheck } from "../../src/operations/check-sale.js";
import { pay } from "../../src/operations/pay.js";
import { completeRefund, refundOrder } from "../../src/operations/refund.js";
import type { Resources } from "../../src/resources.js";
import {
  expireOrders,
  letPass,
  openProcess,
  openSale,
  order,
  type Stores,
  startStores,
  type TestSale,
} from "./support.js";

let stores: Stores;
let sluice: Resources;
let sale: TestSale;

beforeAll(async () => {
  stores = await startStores();
  sluice = await openProcess(stores);
});

beforeEach(async () => {
  sale = await openSale(sluice, { initial: 50 });
});

const check = () => checkSale(sluice, sale.id, 0);

/** What was found wrong, in short. */
const found = ({ findings }: SaleCheck) =>
  Object.fromEntries(findings.map(({ kind, invariant, count, shown }) => [kind, { invariant, count, shown }]));

const kinds = (result: SaleCheck): FindingKind[] => result.findings.map(({ kind }) => kind).sort();

describe("S is broken", () => {
  it("by an item whose columns don't add up", async () => {
    await stores.sql("ALTER TABLE sale_items DROP CONSTRAINT sale_items_stock_adds_up");
    await stores.sql('UPDATE sale_items SET sold = 3 WHERE "saleId" = $1', [sale.id]);
    const result = found(await check());
    expect(Object.keys(result)).toEqual(["columns", "orders", "sums"]);
    expect(result.columns).toEqual({
      invariant: "S",
      count: 1,
      shown: [{ id: sale.itemId, expected: 50, actual: "50 + 0 + 3 + 0" }],
    });
    expect(result.orders).toMatchObject({ shown: [{ id: sale.itemId, expected: "0 sold", actual: "3 sold" }] });
  });

  it("by an order that is gone, though its units are locked", async () => {
    const requestId = await order(sluice, sale, "anna", { quantity: 2 });
    await stores.sql('DELETE FROM orders WHERE "saleId" = $1', [sale.id]);
    const result = await check();
    expect(kinds(result)).toEqual(["movements", "orders", "stories"]);
    expect(found(result)).toMatchObject({
      orders: { invariant: "S", shown: [{ id: sale.itemId, expected: "0 locked", actual: "2 locked" }] },
      movements: { invariant: "S", shown: [{ id: requestId, expected: "nothing", actual: "2 LOCK" }] },
    });
  });

  it("by units that came back twice, or to nobody's knowledge", async () => {
    const requestId = await order(sluice, sale, "anna", { quantity: 2 });
    await stores.sql(
      `INSERT INTO stock_movements ("saleId", "itemId", "requestId", kind, quantity) VALUES ($1, $2, $3, 'RELEASE', 2)`,
      [sale.id, sale.itemId, requestId],
    );
    const result = await check();
    expect(kinds(result)).toEqual(["movements", "sums"]);
    expect(found(result)).toMatchObject({
      sums: { invariant: "S", shown: [{ id: sale.itemId, expected: "0 locked", actual: "2 locked" }] },
      movements: { invariant: "S", shown: [{ id: requestId, expected: "2 LOCK", actual: "2 LOCK, 2 RELEASE" }] },
    });
  });

  it("by units on sale that no movement brought", async () => {
    await stores.sql('UPDATE sale_items SET initial = 51, available = 51 WHERE "saleId" = $1', [sale.id]);
    const shown = [{ id: sale.itemId, expected: "50 put on sale", actual: "51 put on sale" }];
    expect(found(await check()).sums).toEqual({ invariant: "S", count: 1, shown });
  });

  it("by an order whose payment is gone, and by a payment whose order was not paid", async () => {
    const [anna, bert] = [await order(sluice, sale, "anna"), await order(sluice, sale, "bert")];
    await pay(sluice, { orderId: orderIdOf(sale.id, anna), paymentRef: `of_${anna}`, amountMinor: 2_500 });
    expect((await check()).findings).toEqual([]);
    await stores.sql('UPDATE payments SET "requestId" = $2 WHERE "requestId" = $1', [anna, bert]);
    const story = `2500 by of_${anna} kept`;
    expect(found(await check())).toEqual({
      payments: {
        invariant: "S",
        count: 2,
        shown: [
          { id: anna, expected: story, actual: "no money" },
          { id: bert, expected: "no money", actual: story },
        ].sort((one, other) => (one.id < other.id ? -1 : 1)),
      },
    });
  });

  it("by money that was given back for an order that is still to be refunded", async () => {
    const requestId = await order(sluice, sale, "anna");
    const orderId = orderIdOf(sale.id, requestId);
    const paymentRef = `of_${requestId}`;
    await pay(sluice, { orderId, paymentRef, amountMinor: 2_500 });
    await refundOrder(sluice, { orderId, reason: "torn", actor: "olga" });
    expect((await check()).findings).toEqual([]);
    await stores.sql(`UPDATE payments SET "refundRef" = "paymentRef", "refundedAt" = now() WHERE "paymentRef" = $1`, [
      paymentRef,
    ]);
    const [expected, actual] = [`2500 by ${paymentRef} to be given back`, `2500 by ${paymentRef} given back`];
    expect(found(await check()).payments).toEqual({
      invariant: "S",
      count: 1,
      shown: [{ id: requestId, expected, actual }],
    });
  });

  it.each([true, false])("by nothing, whichever way an order went (restocked: %s)", async (restock) => {
    const ids = await Promise.all(["anna", "bert", "carl"].map((buyer) => order(sluice, sale, buyer, { quantity: 2 })));
    const [paid, cancelled, expired] = ids.map((requestId) => orderIdOf(sale.id, requestId));
    await pay(sluice, { orderId: paid ?? "", paymentRef: `of_${paid}`, amountMinor: 5_000 });
    await refundOrder(sluice, { orderId: paid ?? "", reason: "torn", actor: "olga" });
    await completeRefund(sluice, { orderId: paid ?? "", refundRef: `back_${paid}`, restock, actor: "olga" });
    await cancelOrder(sluice, { orderId: cancelled ?? "", by: "operator", reason: "a slip", actor: "olga" });
    await letPass(stores, sale);
    await expireOrders(sluice);
    expect(expired).toBeDefined();
    const left = restock ? 50 : 48;
    expect(await check()).toMatchObject({
      findings: [],
      uncompared: null,
      items: [{ initial: left, ordered: 0, offered: left }],
    });
  });
});
