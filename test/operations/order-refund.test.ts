import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { cancelOrder } from "../../src/operations/cancel.js";
import { pay } from "../../src/operations/pay.js";
import { completeRefund, refundOrder, refundPayment } from "../../src/operations/refund.js";
import type { Resources } from "../../src/resources.js";
import { auditsOf, movedUnits, orderId, PRICE, stageAfter, stockOf } from "./order-support.js";
import {
  ask,
  inRedis,
  openProcess,
  openSale,
  order,
  remaining,
  type Stores,
  saleField,
  startStores,
  type TestSale,
} from "./support.js";

let stores: Stores;
let sluice: Resources;
let other: Resources;
let sale: TestSale;
let number = 0;

beforeAll(async () => {
  stores = await startStores();
  [sluice, other] = await Promise.all([openProcess(stores), openProcess(stores)]);
});

beforeEach(async () => {
  sale = await openSale(sluice, { initial: 10 });
});

const newRef = () => `re_${++number}`;
const CONFLICT = { code: "CONFLICT" };
const NOT_FOUND = { code: "NOT_FOUND" };
const payFor = (requestId: string, paymentRef: string, amountMinor: number) =>
  pay(sluice, { orderId: orderId(sale, requestId), paymentRef, amountMinor });
const refund = (requestId: string, by = sluice) =>
  refundOrder(by, { orderId: orderId(sale, requestId), reason: "it broke", actor: "olga" });
const complete = (requestId: string, refundRef: string, restock: boolean, by = sluice) =>
  completeRefund(by, { orderId: orderId(sale, requestId), refundRef, restock, actor: "otto" });
const giveBack = (paymentRef: string, refundRef: string) =>
  refundPayment(sluice, { paymentRef, refundRef, actor: "otto" });
/** An order that is paid, by a payment of the same name. */
async function paidOrder(buyerId: string, quantity = 1): Promise<string> {
  const requestId = await order(sluice, sale, buyerId, { quantity });
  expect((await payFor(requestId, `pay_${requestId}`, PRICE * quantity)).outcome).toBe("PAID");
  return requestId;
}
const toRefund = async (buyerId: string, quantity = 1) => {
  const requestId = await paidOrder(buyerId, quantity);
  await refund(requestId);
  return requestId;
};
const paymentOf = async (paymentRef: string) =>
  (
    await stores.sql(
      `SELECT outcome, "refundDueAt" IS NOT NULL AS due, "refundRef", "refundedAt" IS NOT NULL AS refunded
       FROM payments WHERE "paymentRef" = $1`,
      [paymentRef],
    )
  )[0];
const told = (error: { code: string }) => error.code;

describe("a paid order that is refunded", () => {
  it("keeps its units aside and its buyer bound until the money was given back; a repeat does nothing more", async () => {
    const requestId = await paidOrder("anna", 3);
    const answers = await Promise.all([refund(requestId), refund(requestId, other), refund(requestId)]);
    expect(answers.map(({ status }) => status)).toEqual(Array(3).fill("REFUND_PENDING"));
    expect(await stockOf(stores, sale)).toEqual({ initial: 10, available: 7, locked: 0, sold: 0, refundPending: 3 });
    expect(await paymentOf(`pay_${requestId}`)).toMatchObject({ outcome: "PAID", due: true, refunded: false });
    expect(await auditsOf(stores, sale)).toEqual([
      { action: "refundOrder", actor: "olga", reason: "it broke", details: { orderId: orderId(sale, requestId) } },
    ]);
    expect(await inRedis(stores, sale, requestId)).toMatchObject(stageAfter("REFUND_PENDING"));
    expect((await ask(sluice, sale, "anna")).kind).toBe("already_reserved");
    expect(await remaining(stores, sale)).toBe(7);
    await stores.expectSound(sale);
  });

  it("and restocked has its units on sale again, once, and its buyer may buy again", async () => {
    const requestId = await toRefund("anna", 3);
    const refundRef = newRef();
    const answers = await Promise.all(
      Array.from({ length: 6 }, (_, at) => complete(requestId, refundRef, true, at % 2 ? other : sluice)),
    );
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set(["REFUNDED"]));
    expect(await stockOf(stores, sale)).toEqual({ initial: 10, available: 10, locked: 0, sold: 0, refundPending: 0 });
    expect(await movedUnits(stores, sale)).toEqual({ ADJUST: 10, LOCK: 3, SELL: 3, REFUND_START: 3, REFUND_DONE: 3 });
    expect(await paymentOf(`pay_${requestId}`)).toMatchObject({ refundRef, refunded: true });
    expect((await auditsOf(stores, sale)).map(({ action }) => action)).toEqual(["refundOrder", "completeRefund"]);
    expect(await inRedis(stores, sale, requestId)).toMatchObject({ ...stageAfter("REFUNDED"), reason: "REFUNDED" });
    expect(await remaining(stores, sale)).toBe(10);
    await paidOrder("anna", 5);
    expect(await complete(requestId, refundRef, true)).toMatchObject({ status: "REFUNDED" });
    expect(await refund(requestId)).toMatchObject({ status: "REFUNDED" });
    await stores.expectSound(sale);
  });

  it("and not restocked takes its units out of the sale for good", async () => {
    const requestId = await toRefund("anna", 3);
    const refundRef = newRef();
    const initial = async () => (await sluice.sales.get(sale.id))?.items[0]?.initial;
    expect(await initial()).toBe(10);
    expect(await complete(requestId, refundRef, false)).toMatchObject({ status: "REFUNDED" });
    expect(await initial()).toBe(7);
    expect(await complete(requestId, refundRef, false)).toMatchObject({ status: "REFUNDED" });
    expect(await stockOf(stores, sale)).toEqual({ initial: 7, available: 7, locked: 0, sold: 0, refundPending: 0 });
    expect(await movedUnits(stores, sale)).toMatchObject({ REFUND_START: 3, WRITE_OFF: 3 });
    expect(await remaining(stores, sale)).toBe(7);
    await stores.expectSound(sale);
    await order(sluice, sale, "anna", { quantity: 5 });
    await order(sluice, sale, "ben", { quantity: 2 });
    expect((await ask(sluice, sale, "carl")).kind).toBe("sold_out");
    await stores.expectSound(sale);
  });

  it("down to the last unit of an item leaves an item of none", async () => {
    sale = await openSale(sluice, { initial: 2 });
    const requestId = await toRefund("anna", 2);
    await complete(requestId, newRef(), false);
    expect(await stockOf(stores, sale)).toMatchObject({ initial: 0, available: 0 });
    expect((await ask(sluice, sale, "anna")).kind).toBe("sold_out");
    await stores.expectSound(sale);
  });

  it("is settled once, in one way: under another reference, or with its units going elsewhere, it is a CONFLICT", async () => {
    const requestId = await toRefund("anna", 2);
    const refs = [newRef(), newRef()] as const;
    const ways = [true, false].flatMap((restock) => refs.map((refundRef) => ({ refundRef, restock })));
    const settled = await Promise.allSettled(
      ways.map(({ refundRef, restock }) => complete(requestId, refundRef, restock)),
    );
    const outcomes = settled.map((one) => (one.status === "fulfilled" ? one.value.status : told(one.reason)));
    expect(outcomes.toSorted()).toEqual(["CONFLICT", "CONFLICT", "CONFLICT", "REFUNDED"]);
    const { refundRef, restock } = ways[outcomes.indexOf("REFUNDED")] as (typeof ways)[number];
    expect(await paymentOf(`pay_${requestId}`)).toMatchObject({ refundRef });
    expect(await stockOf(stores, sale)).toMatchObject({ initial: restock ? 10 : 8, available: restock ? 10 : 8 });
    await expect(complete(requestId, refundRef, !restock)).rejects.toMatchObject(CONFLICT);
    await stores.expectSound(sale);
  });

  it("shares its reference with no other refund, also at once", async () => {
    for (let round = 0; round < 5; round += 1) {
      const requestIds = [await toRefund(`a-${round}`), await toRefund(`b-${round}`)];
      const refundRef = newRef();
      const settled = await Promise.allSettled(requestIds.map((requestId) => complete(requestId, refundRef, true)));
      const outcomes = settled.map((one) => (one.status === "fulfilled" ? one.value.status : told(one.reason)));
      expect(outcomes.toSorted()).toEqual(["CONFLICT", "REFUNDED"]);
      const loser = requestIds[outcomes.indexOf("CONFLICT")] as string;
      expect(await paymentOf(`pay_${loser}`)).toMatchObject({ due: true, refunded: false });
      await complete(loser, newRef(), true);
    }
    expect(await stockOf(stores, sale)).toMatchObject({ available: 10, refundPending: 0 });
    await stores.expectSound(sale);
  });

  it("must have been paid, and its refund begun before it ends", async () => {
    const requestId = await order(sluice, sale, "anna");
    await expect(refund(requestId)).rejects.toMatchObject(CONFLICT);
    await expect(complete(requestId, newRef(), true)).rejects.toMatchObject(CONFLICT);
    await payFor(requestId, newRef(), PRICE);
    await expect(complete(requestId, newRef(), true)).rejects.toMatchObject(CONFLICT);
    const cancelled = await order(sluice, sale, "ben");
    await cancelOrder(sluice, { orderId: orderId(sale, cancelled), by: "buyer", buyerId: "ben" });
    await expect(refund(cancelled)).rejects.toMatchObject(CONFLICT);
    await expect(complete(cancelled, newRef(), true)).rejects.toMatchObject(CONFLICT);
    for (const unknown of ["00000000-0000-4000-8000-000000000000", "x", ""]) {
      await expect(refund(unknown)).rejects.toMatchObject(NOT_FOUND);
      await expect(complete(unknown, newRef(), true)).rejects.toMatchObject(NOT_FOUND);
    }
    await expect(complete(requestId, "two words", true)).rejects.toMatchObject({ code: "BAD_USER_INPUT" });
    expect(await auditsOf(stores, sale)).toEqual([]);
  });

  it("that Redis has lost meanwhile is there again as a load finds it", async () => {
    const [pending, refunded] = [await toRefund("anna"), await toRefund("ben", 2)];
    await complete(refunded, newRef(), true);
    await stores.redis.flushAll();
    await expect(ask(sluice, sale, "anna")).rejects.toMatchObject({ code: "SERVICE_UNAVAILABLE" });
    await sluice.loads.settled();
    expect(await saleField(stores, sale, "phase")).toBe("READY");
    expect((await ask(sluice, sale, "anna")).kind).toBe("already_reserved");
    expect(await inRedis(stores, sale, pending)).toMatchObject(stageAfter("REFUND_PENDING"));
    await complete(pending, newRef(), false);
    expect(await remaining(stores, sale)).toBe(9);
    await order(sluice, sale, "ben");
    await stores.expectSound(sale);
  });
});

describe("money that could not buy", () => {
  it("is due until it was given back, once and under one reference", async () => {
    const requestId = await paidOrder("anna");
    const stray = `stray_${requestId}`;
    expect((await payFor(requestId, stray, PRICE)).outcome).toBe("REFUND_DUE");
    const refundRef = newRef();
    const answers = await Promise.all([giveBack(stray, refundRef), giveBack(stray, refundRef)]);
    expect(answers).toMatchObject(Array(2).fill({ refundRef, refundedAt: expect.any(Date) }));
    await expect(giveBack(stray, newRef())).rejects.toMatchObject(CONFLICT);
    expect(await paymentOf(stray)).toEqual({ outcome: "REFUND_DUE", due: true, refundRef, refunded: true });
    expect(await auditsOf(stores, sale)).toEqual([
      {
        action: "refundPayment",
        actor: "otto",
        reason: null,
        details: { orderId: orderId(sale, requestId), paymentRef: stray, refundRef },
      },
    ]);
    // The money that bought stays where it is, and the reference is spent.
    await expect(giveBack(`pay_${requestId}`, newRef())).rejects.toMatchObject(CONFLICT);
    await expect(giveBack("nobody's", newRef())).rejects.toMatchObject(NOT_FOUND);
    await refund(requestId);
    await expect(giveBack(`pay_${requestId}`, newRef())).rejects.toMatchObject(CONFLICT);
    await expect(complete(requestId, refundRef, true)).rejects.toMatchObject(CONFLICT);
    await complete(requestId, newRef(), true);
    await stores.expectSound(sale);
  });
});
