import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { cancelOrder } from "../../src/operations/cancel.js";
import { pay } from "../../src/operations/pay.js";
import { completeRefund, refundOrder } from "../../src/operations/refund.js";
import { relay } from "../../src/operations/relay.js";
import { writeOrders } from "../../src/operations/write-orders.js";
import type { Resources } from "../../src/resources.js";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy.js";
import { waitFor } from "../support/wait.js";
import { auditsOf, movedUnits, orderId, PRICE, stageAfter, stockOf } from "./order-support.js";
import {
  ask,
  expireOrders,
  inRedis,
  letPass,
  openProcess,
  openSale,
  order,
  queueOne,
  remaining,
  type Stores,
  startStores,
  type TestSale,
} from "./support.js";

let stores: Stores;
let sluice: Resources;
let other: Resources;
/** Reaches its Redis through a network that can be cut. */
let remote: Resources;
let proxy: TcpProxy;
let sale: TestSale;

beforeAll(async () => {
  stores = await startStores();
  proxy = await startTcpProxy(stores.redis.url);
  [sluice, other, remote] = await Promise.all([
    openProcess(stores),
    openProcess(stores),
    openProcess(stores, { redisUrl: proxy.url(stores.redis.url) }),
  ]);
});

beforeEach(async () => {
  sale = await openSale(sluice, { initial: 10 });
});

const byBuyer = (requestId: string, buyerId = "anna", by = sluice) =>
  cancelOrder(by, { orderId: orderId(sale, requestId), by: "buyer", buyerId });
const byOperator = (requestId: string, reason = "a wrong price") =>
  cancelOrder(sluice, { orderId: orderId(sale, requestId), by: "operator", actor: "otto", reason });
const payFor = (requestId: string) =>
  pay(sluice, { orderId: orderId(sale, requestId), paymentRef: `pay_${requestId}`, amountMinor: PRICE });
const events = () =>
  stores.sql(
    'SELECT "toStage", units, "appliedAt" IS NOT NULL AS told FROM request_events WHERE "saleId" = $1 ORDER BY id',
    [sale.id],
  );

describe("a cancellation by the buyer", () => {
  it("gives the units back, and he may reserve again when it returns, at any process", async () => {
    for (let round = 0; round < 10; round += 1) {
      const requestId = await order(sluice, sale, "anna", { quantity: 5 });
      expect(await byBuyer(requestId)).toMatchObject({ status: "CANCELLED", buyerId: "anna", quantity: 5 });
      expect((await ask(other, sale, "anna", { requestId, quantity: 5 })).kind).toBe("decided");
      const again = await order(other, sale, "anna", { quantity: 5 });
      await byBuyer(again);
    }
    expect(await stockOf(stores, sale)).toMatchObject({ initial: 10, available: 10, locked: 0 });
    expect(await movedUnits(stores, sale)).toEqual({ ADJUST: 10, LOCK: 100, RELEASE: 100 });
    expect(await auditsOf(stores, sale)).toEqual([]);
    await stores.expectSound(sale);
  });

  it("counts also when the window has passed a moment ago", async () => {
    const requestId = await order(sluice, sale, "anna");
    await letPass(stores, sale);
    expect(await byBuyer(requestId)).toMatchObject({ status: "CANCELLED" });
    expect(await expireOrders(sluice)).toBe(0);
    await stores.expectSound(sale);
  });

  it("happens once, however often and at once it is sent, and whoever sends it later", async () => {
    const requestId = await order(sluice, sale, "anna", { quantity: 3 });
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, at) => byBuyer(requestId, "anna", at % 2 ? other : sluice)),
    );
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set(["CANCELLED"]));
    expect(await byOperator(requestId)).toMatchObject({ status: "CANCELLED" });
    expect(await movedUnits(stores, sale)).toMatchObject({ LOCK: 3, RELEASE: 3 });
    expect(await events()).toEqual([{ toStage: "CANCELLED", units: 3, told: true }]);
    // The buyer had done it: there was nothing left for the operator to do, or to note.
    expect(await auditsOf(stores, sale)).toEqual([]);
    expect(await inRedis(stores, sale, requestId)).toMatchObject({ reason: "CANCELLED_BY_BUYER" });
    await stores.expectSound(sale);
  });

  it("of another's order, of none, and of what is no order's id are NOT_FOUND alike, and change nothing", async () => {
    const requestId = await order(sluice, sale, "anna");
    const notFound = { code: "NOT_FOUND", message: "There is no such order." };
    await expect(byBuyer(requestId, "ben")).rejects.toMatchObject(notFound);
    await expect(byBuyer("00000000-0000-4000-8000-000000000000")).rejects.toMatchObject(notFound);
    for (const id of ["", "x", `${sale.id}.`, `${sale.id}.${requestId} `, `.${requestId}`, "\0", "\ud800"]) {
      await expect(cancelOrder(sluice, { orderId: id, by: "buyer", buyerId: "anna" })).rejects.toMatchObject(notFound);
    }
    const undecided = await queueOne(sluice, sale, "ben");
    await expect(byBuyer(undecided, "ben")).rejects.toMatchObject(notFound);
    await writeOrders(sluice, sale.id, [undecided]);
    expect(await stockOf(stores, sale)).toMatchObject({ locked: 2 });
    expect(await events()).toEqual([]);
  });
});

describe("an order that is not waiting to be paid can't be cancelled:", () => {
  const refund = async (requestId: string) => {
    await payFor(requestId);
    await refundOrder(sluice, { orderId: orderId(sale, requestId), actor: "olga", reason: "it broke" });
  };
  it.each<[string, (requestId: string) => Promise<unknown>]>([
    ["PAID", payFor],
    ["EXPIRED", () => letPass(stores, sale).then(() => expireOrders(sluice))],
    ["REFUND_PENDING", refund],
    [
      "REFUNDED",
      async (requestId) => {
        await refund(requestId);
        const how = { refundRef: `re_${requestId}`, restock: true, actor: "olga" };
        await completeRefund(sluice, { orderId: orderId(sale, requestId), ...how });
      },
    ],
  ])("%s", async (status, become) => {
    const requestId = await order(sluice, sale, "anna");
    await become(requestId);
    const [before, audits] = [await stockOf(stores, sale), await auditsOf(stores, sale)];
    const conflict = { code: "CONFLICT", message: `An order that is ${status} can't be cancelled.` };
    await expect(byBuyer(requestId)).rejects.toMatchObject(conflict);
    await expect(byOperator(requestId)).rejects.toMatchObject(conflict);
    await expect(byBuyer(requestId, "ben")).rejects.toMatchObject({ code: "NOT_FOUND" });
    expect(await stockOf(stores, sale)).toEqual(before);
    expect(await auditsOf(stores, sale)).toEqual(audits);
    await stores.expectSound(sale);
  });
});

describe("a cancellation by an operator", () => {
  it("is anybody's, is told as such, and is in the log with its reason, once", async () => {
    const requestId = await order(sluice, sale, "anna", { quantity: 2 });
    const answers = await Promise.all([byOperator(requestId), byOperator(requestId), byOperator(requestId)]);
    expect(answers.map(({ status }) => status)).toEqual(Array(3).fill("CANCELLED"));
    expect(await auditsOf(stores, sale)).toEqual([
      {
        action: "cancelOrderByOperator",
        actor: "otto",
        reason: "a wrong price",
        details: { orderId: orderId(sale, requestId) },
      },
    ]);
    expect(await ask(sluice, sale, "anna", { requestId, quantity: 2 })).toMatchObject({
      kind: "decided",
      reservation: { stage: "CANCELLED", reason: "CANCELLED_BY_OPERATOR" },
    });
    await order(sluice, sale, "anna");
    await stores.expectSound(sale);
  });

  it.each(["", "  ", "x".repeat(501), "a\0b", "\ud800"])("for no reason in words is refused: %j", async (reason) => {
    const requestId = await order(sluice, sale, "anna");
    await expect(byOperator(requestId, reason)).rejects.toMatchObject({ code: "BAD_USER_INPUT" });
    expect(await stockOf(stores, sale)).toMatchObject({ locked: 1 });
  });
});

describe("a cancellation that Redis hears", () => {
  it("before the order's SUCCESS gives the units back once, and the late SUCCESS does no harm", async () => {
    const requestId = await queueOne(sluice, sale, "anna", { quantity: 4 });
    proxy.cut();
    await writeOrders(remote, sale.id, [requestId]);
    proxy.heal();
    expect(await inRedis(stores, sale, requestId)).toMatchObject({ stage: "QUEUED" });
    await byBuyer(requestId);
    expect(await inRedis(stores, sale, requestId)).toMatchObject(stageAfter("CANCELLED"));
    expect(await remaining(stores, sale)).toBe(10);
    expect(await stores.client.zrange(`sluice:{${sale.id}}:pending`, 1, -1)).toEqual([]);
    const again = await order(sluice, sale, "anna", { quantity: 4 });
    // The writer comes back to it, as the forwarder has him do.
    await writeOrders(other, sale.id, [requestId]);
    expect(await inRedis(stores, sale, requestId)).toMatchObject(stageAfter("CANCELLED"));
    expect(await stores.client.hget(`sluice:{${sale.id}}:holders`, "anna")).toBe(again);
    await stores.expectSound(sale);
  });

  it("late, since it was away: done all the same, and told by the relay", async () => {
    const requestId = await order(sluice, sale, "anna", { quantity: 4 });
    await remote.redis.whenUsable(5_000);
    proxy.cut();
    expect(await byBuyer(requestId, "anna", remote)).toMatchObject({ status: "CANCELLED" });
    expect(await events()).toEqual([{ toStage: "CANCELLED", units: 4, told: false }]);
    expect((await ask(sluice, sale, "anna")).kind).toBe("already_reserved");
    expect(await remaining(stores, sale)).toBe(6);
    // Sent again, it is not done again.
    expect(await byBuyer(requestId, "anna", remote)).toMatchObject({ status: "CANCELLED" });
    proxy.heal();
    await waitFor(() => remote.redis.isUsable(), { what: "Redis to be met again" });
    await Promise.all([relay(remote), relay(sluice)]);
    expect(await events()).toEqual([{ toStage: "CANCELLED", units: 4, told: true }]);
    await order(sluice, sale, "anna", { quantity: 5 });
    await stores.expectSound(sale);
  });
});
