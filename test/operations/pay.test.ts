import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { orderIdOf } from "../../src/domain/ids.js";
import { cancelOrder } from "../../src/operations/cancel.js";
import { pay } from "../../src/operations/pay.js";
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
let number = 0;

beforeAll(async () => {
  stores = await startStores();
  sluice = await openProcess(stores);
});

beforeEach(async () => {
  sale = await openSale(sluice, { initial: 10 });
});

const PRICE = 2_500;
const newRef = () => `pay_${++number}`;
const idOf = (requestId: string) => orderIdOf(sale.id, requestId);
const report = (requestId: string, more: { paymentRef?: string; amountMinor?: number } = {}) => ({
  orderId: idOf(requestId),
  paymentRef: newRef(),
  amountMinor: PRICE,
  ...more,
});
const statusOf = async (requestId: string) =>
  (await stores.sql('SELECT status FROM orders WHERE "saleId" = $1 AND "requestId" = $2', [sale.id, requestId]))[0]
    ?.status;
/** The payments of this sale as they are on record, the first one first. */
const recorded = () =>
  stores.sql(
    `SELECT "paymentRef", outcome, "amountMinor", "refundDueAt" IS NOT NULL AS due FROM payments
     WHERE "saleId" = $1 ORDER BY "createdAt"`,
    [sale.id],
  );
const stock = async () =>
  (
    await stores.sql('SELECT available, locked, sold, "refundPending" FROM sale_items WHERE "saleId" = $1', [sale.id])
  )[0];

describe("a payment", () => {
  it("pays an order that waits for it: its units are sold, and it is on record", async () => {
    const requestId = await order(sluice, sale, "anna", { quantity: 2 });
    const paid = await pay(sluice, report(requestId, { amountMinor: 2 * PRICE, paymentRef: "pay_first" }));
    expect(paid).toMatchObject({
      outcome: "PAID",
      order: { status: "PAID", paymentRef: "pay_first", paidAt: expect.any(Date) },
    });
    expect(await stock()).toEqual({ available: 8, locked: 0, sold: 2, refundPending: 0 });
    expect(await recorded()).toEqual([
      { paymentRef: "pay_first", outcome: "PAID", amountMinor: 2 * PRICE, due: false },
    ]);
    await stores.expectSound(sale);
  });

  it("that is reported again gets ALREADY_PAID, however often and at once", async () => {
    const requestId = await order(sluice, sale, "anna");
    const same = report(requestId);
    const answers = await Promise.all(Array.from({ length: 8 }, () => pay(sluice, same)));
    expect(answers.map(({ outcome }) => outcome).sort()).toEqual([...Array(7).fill("ALREADY_PAID"), "PAID"]);
    expect(
      await pay(sluice, { ...same, orderId: same.orderId.toUpperCase().replace(sale.id.toUpperCase(), sale.id) }),
    ).toMatchObject({ outcome: "ALREADY_PAID", order: { status: "PAID" } });
    expect(await recorded()).toHaveLength(1);
    await stores.expectSound(sale);
  });

  it("by a second reference is money to be given back", async () => {
    const requestId = await order(sluice, sale, "anna");
    const outcomes = await Promise.all([pay(sluice, report(requestId)), pay(sluice, report(requestId))]);
    expect(outcomes.map(({ outcome }) => outcome).sort()).toEqual(["PAID", "REFUND_DUE"]);
    expect((await recorded()).map(({ due }) => due).sort()).toEqual([false, true]);
    expect(await stock()).toMatchObject({ sold: 1, locked: 0 });
  });

  it("of a wrong amount leaves the order as it was, and the right one pays it", async () => {
    const requestId = await order(sluice, sale, "anna");
    const wrong = report(requestId, { amountMinor: PRICE - 1 });
    expect(await pay(sluice, wrong)).toMatchObject({
      outcome: "AMOUNT_MISMATCH",
      order: { status: "PENDING_PAYMENT" },
    });
    expect(await pay(sluice, wrong)).toMatchObject({ outcome: "AMOUNT_MISMATCH" });
    expect(await pay(sluice, report(requestId))).toMatchObject({ outcome: "PAID" });
    expect(await pay(sluice, wrong)).toMatchObject({ outcome: "AMOUNT_MISMATCH", order: { status: "PAID" } });
    expect(await recorded()).toMatchObject([
      { outcome: "AMOUNT_MISMATCH", due: true },
      { outcome: "PAID", due: false },
    ]);
  });

  it("a second late can't buy, before the order was expired and after", async () => {
    const requestId = await order(sluice, sale, "anna");
    await letPass(stores, sale);
    const late = report(requestId);
    expect(await pay(sluice, late)).toMatchObject({ outcome: "REFUND_DUE", order: { status: "PENDING_PAYMENT" } });
    expect(await expireOrders(sluice)).toBe(1);
    expect(await pay(sluice, late)).toMatchObject({ outcome: "REFUND_DUE", order: { status: "EXPIRED" } });
    // The wrong amount for an order that can't be paid at all.
    expect(await pay(sluice, report(requestId, { amountMinor: 1 }))).toMatchObject({ outcome: "REFUND_DUE" });
    expect(await recorded()).toMatchObject([{ due: true }, { due: true }]);
    expect(await stock()).toEqual({ available: 10, locked: 0, sold: 0, refundPending: 0 });
    await stores.expectSound(sale);
  });

  it("for a cancelled order is money to be given back", async () => {
    const requestId = await order(sluice, sale, "anna");
    await cancelOrder(sluice, { orderId: idOf(requestId), by: "buyer", buyerId: "anna" });
    expect(await pay(sluice, report(requestId))).toMatchObject({
      outcome: "REFUND_DUE",
      order: { status: "CANCELLED" },
    });
    expect(await statusOf(requestId)).toBe("CANCELLED");
    await stores.expectSound(sale);
  });

  it.each([
    ["an order that nobody made", "00000000-0000-4000-8000-000000000000"],
    ["what is no order's id", null],
  ])("for %s is on record, with no order", async (_name, requestId) => {
    const unknown = { orderId: requestId ? idOf(requestId) : `order-${sale.id}`, paymentRef: newRef(), amountMinor: 5 };
    expect(await pay(sluice, unknown)).toEqual({ outcome: "REFUND_DUE", order: null });
    expect(await pay(sluice, unknown)).toEqual({ outcome: "REFUND_DUE", order: null });
    const [row] = await stores.sql('SELECT "orderId", "refundDueAt" FROM payments WHERE "paymentRef" = $1', [
      unknown.paymentRef,
    ]);
    expect(row).toEqual({ orderId: unknown.orderId, refundDueAt: expect.any(Date) });
  });

  it("whose reference stands for another order or amount is a CONFLICT, and pays nothing", async () => {
    const [anna, ben] = [await order(sluice, sale, "anna"), await order(sluice, sale, "ben")];
    const first = report(anna);
    expect(await pay(sluice, first)).toMatchObject({ outcome: "PAID" });
    const conflict = { code: "CONFLICT" };
    await expect(pay(sluice, { ...first, orderId: idOf(ben) })).rejects.toMatchObject(conflict);
    await expect(pay(sluice, { ...first, amountMinor: 1 })).rejects.toMatchObject(conflict);
    expect(await statusOf(ben)).toBe("PENDING_PAYMENT");
  });

  it("of one reference for two orders at once pays one of them", async () => {
    for (let round = 0; round < 5; round += 1) {
      const orders = [await order(sluice, sale, `a-${round}`), await order(sluice, sale, `b-${round}`)];
      const paymentRef = newRef();
      const answers = await Promise.allSettled(orders.map((id) => pay(sluice, report(id, { paymentRef }))));
      const outcomes = answers.map((answer) =>
        answer.status === "fulfilled" ? answer.value.outcome : answer.reason.code,
      );
      expect(outcomes.sort()).toEqual(["CONFLICT", "PAID"]);
      expect((await Promise.all(orders.map(statusOf))).sort()).toEqual(["PAID", "PENDING_PAYMENT"]);
      for (const [at, requestId] of orders.entries()) {
        const buyerId = `${"ab"[at]}-${round}`;
        await cancelOrder(sluice, { orderId: idOf(requestId), by: "buyer", buyerId }).catch(() => {});
      }
    }
    await stores.expectSound(sale);
  });

  it.each([
    { paymentRef: "" },
    { paymentRef: "x".repeat(256) },
    { paymentRef: "a\0b" },
    { paymentRef: "ä" },
    { paymentRef: "two words" },
    { orderId: "" },
    { orderId: "x".repeat(129) },
    { orderId: "\ud800" },
    { amountMinor: -1 },
    { amountMinor: 0.5 },
    { amountMinor: Number.NaN },
    { amountMinor: 2 ** 31 },
  ])("that can't be one is refused: %o", async (wrong) => {
    const input = { orderId: "nobody.s", paymentRef: newRef(), amountMinor: 1, ...wrong };
    await expect(pay(sluice, input)).rejects.toMatchObject({ code: "BAD_USER_INPUT" });
  });
});
