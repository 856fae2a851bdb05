import { randomUUID } from "node:crypto";
import { beforeAll, describe, expect, it } from "vitest";
import { settleAndCheck } from "../support/invariants.js";
import {
  cancelOrder,
  codeOf,
  confirmPayment,
  ORDER,
  type OrderNode,
  placeOrder,
  reserveInTheEnd,
} from "../support/orders.js";
import { type Answer, type Api, prepareSluice, type TestSale, type TestSluice } from "../support/sluice.js";
import { subscribe } from "../support/subscriptions.js";
import { waitFor } from "../support/wait.js";

interface Units {
  readonly initial: number;
  readonly remaining: number;
}

let sluice: TestSluice;
let first: Api;
let second: Api;
let operator: string;

beforeAll(async () => {
  sluice = await prepareSluice();
  [first, second] = await Promise.all([sluice.startApi(), sluice.startApi(), sluice.startWorker()]);
  operator = await sluice.token("operator", "olga");
});

describe("cancelOrderByOperator", () => {
  it("cancels anybody's unpaid order once, with its reason in the log, and tells the buyer who did", async () => {
    const sale = await sluice.createSale(first);
    const order = await placeOrder(sluice, first, sale, "suspect");
    const cancelled = { id: order.id, status: "CANCELLED", buyerId: "suspect", paymentRef: null, paidAt: null };
    for (const api of [first, second]) {
      const { data } = await cancelByOperator(api, order.id, "a bot");
      expect(data?.cancelOrderByOperator).toEqual(cancelled);
    }
    expect(await auditOf(sale)).toEqual([
      `cancelOrderByOperator by olga: a bot ${JSON.stringify({ orderId: order.id })}`,
    ]);
    expect(await reservationOf(order.token, order.id)).toMatchObject({
      status: "RELEASED",
      reasonCode: "CANCELLED_BY_OPERATOR",
      reason: "The seller cancelled this order.",
    });
    // Whoever had cancelled it: the buyer's own wish is fulfilled.
    expect((await cancelOrder(first, order.token, order.id)).data?.cancelOrder.status).toBe("CANCELLED");
    await settleAndCheck(sluice.databaseUrl, sluice.redis.url, sale.id);
  });

  it("of a paid order is CONFLICT, of none NOT_FOUND", async () => {
    const sale = await sluice.createSale(first);
    const order = await placeOrder(sluice, first, sale, "honest");
    await confirmPayment(sluice, first, order.id);
    expect(codeOf(await cancelByOperator(first, order.id, "why not"))).toBe("CONFLICT");
    for (const id of [`${sale.id}.${randomUUID()}`, "a:b"]) {
      expect(codeOf(await cancelByOperator(first, id, "why not"))).toBe("NOT_FOUND");
    }
    expect(await auditOf(sale)).toEqual([]);
  });
});

describe("a paid order is refunded", () => {
  it("with its units on sale again: the buyer keeps the order until the money was given back, then may buy anew", async () => {
    const sale = await sluice.createSale(first, { initial: [3] });
    const order = await paidOrder(sale, "regretful");
    const { data } = await refund(first, order.id);
    expect(data?.refundOrder).toMatchObject({ status: "REFUND_PENDING", paymentRef: order.paymentRef });
    expect((await refund(second, order.id)).data?.refundOrder.status).toBe("REFUND_PENDING");
    expect(await reservationOf(order.token, order.id)).toMatchObject({ status: "SUCCESS", reasonCode: null });
    expect((await reserveInTheEnd(first, order.token, sale)).status).toBe("ALREADY_RESERVED");
    expect(await dueOf(order.paymentRef)).toMatchObject({ outcome: "PAID", order: { status: "REFUND_PENDING" } });
    expect(await unitsOf(first, sale)).toEqual({ initial: 3, remaining: 2 });

    const refundRef = `back_${order.paymentRef}`;
    for (const api of [first, second]) {
      expect((await complete(api, order.id, refundRef, true)).data?.completeRefund.status).toBe("REFUNDED");
    }
    expect(await dueOf(order.paymentRef)).toBeUndefined();
    expect(codeOf(await complete(first, order.id, "back_other", true))).toBe("CONFLICT");
    expect(codeOf(await complete(first, order.id, refundRef, false))).toBe("CONFLICT");
    expect((await refund(first, order.id)).data?.refundOrder.status).toBe("REFUNDED");
    expect(await reservationOf(order.token, order.id)).toMatchObject({
      status: "RELEASED",
      reasonCode: "REFUNDED",
      reason: "The order was refunded.",
    });
    expect(await unitsOf(second, sale)).toEqual({ initial: 3, remaining: 3 });
    await placeOrder(sluice, second, sale, "regretful");
    const details = { orderId: order.id };
    expect(await auditOf(sale)).toEqual([
      `refundOrder by olga: it broke ${JSON.stringify(details)}`,
      `completeRefund by olga: null ${JSON.stringify({ ...details, restock: true, refundRef })}`,
    ]);
    await settleAndCheck(sluice.databaseUrl, sluice.redis.url, sale.id);
  });

  it("with its units written off: the sale is smaller by them, which every process and every watcher hears", async () => {
    const sale = await sluice.createSale(first, { initial: [3] });
    const watching = [first, second].map((api) => watchUnits(api, sale));
    const order = await paidOrder(sale, "breaker");
    await refund(first, order.id);
    expect((await complete(first, order.id, `gone_${order.paymentRef}`, false)).data?.completeRefund.status).toBe(
      "REFUNDED",
    );
    for (const api of [first, second]) {
      await waitFor(async () => (await unitsOf(api, sale)).initial === 2, { what: "the write-off", timeoutMs: 3_000 });
      expect(await unitsOf(api, sale)).toEqual({ initial: 2, remaining: 2 });
    }
    for (const { until } of watching) await until(isUnits(2, 2), "the write-off", 3_000);
    await settleAndCheck(sluice.databaseUrl, sluice.redis.url, sale.id);
  });

  it("only where it is paid, and completed only where it waits for that", async () => {
    const sale = await sluice.createSale(first);
    const unpaid = await placeOrder(sluice, first, sale, "unpaid");
    const paid = await paidOrder(sale, "content");
    const unknown = `${sale.id}.${randomUUID()}`;
    expect(codeOf(await refund(first, unpaid.id))).toBe("CONFLICT");
    expect(codeOf(await refund(first, unknown))).toBe("NOT_FOUND");
    expect(codeOf(await complete(first, unpaid.id, "back_none", true))).toBe("CONFLICT");
    expect(codeOf(await complete(first, paid.id, "back_none", true))).toBe("CONFLICT");
    expect(codeOf(await complete(first, unknown, "back_none", true))).toBe("NOT_FOUND");
    expect(await auditOf(sale)).toEqual([]);
  });
});

it("refundPayment ends what could not buy, under a reference of its own", async () => {
  const stray = ["stray_1", "stray_2"];
  for (const paymentRef of stray) await confirmPayment(sluice, first, `lost-${paymentRef}`, { paymentRef });
  expect(await dueOf("stray_1")).toEqual({ outcome: "REFUND_DUE", orderId: "lost-stray_1", order: null });
  for (const api of [first, second]) {
    const { data } = await refundPayment(api, "stray_1", "back_1");
    expect(data?.refundPayment).toEqual({ refundRef: "back_1", refundedAt: expect.any(String) });
  }
  expect(await dueOf("stray_1")).toBeUndefined();
  expect(codeOf(await refundPayment(first, "stray_1", "back_2"))).toBe("CONFLICT");
  expect(codeOf(await refundPayment(first, "stray_2", "back_1"))).toBe("CONFLICT");
  expect(codeOf(await refundPayment(first, "stray_3", "back_3"))).toBe("NOT_FOUND");
  const sale = await sluice.createSale(first);
  const { paymentRef } = await paidOrder(sale, "buyer-of-one");
  expect(codeOf(await refundPayment(first, paymentRef, "back_4"))).toBe("CONFLICT");
  expect(await dueOf("stray_2")).toBeDefined();
});

async function paidOrder(sale: TestSale, subject: string) {
  const order = await placeOrder(sluice, first, sale, subject);
  const paymentRef = `pay_${subject}`;
  const { data } = await confirmPayment(sluice, first, order.id, { paymentRef });
  expect(data?.confirmPayment.outcome).toBe("PAID");
  return { ...order, paymentRef };
}

function cancelByOperator(api: Api, id: string, reason: string): Promise<Answer<{ cancelOrderByOperator: OrderNode }>> {
  const text = `mutation ($id: ID!, $why: String!) { cancelOrderByOperator(orderId: $id, reason: $why) { ${ORDER} } }`;
  return api.call(operator, text, { id, why: reason });
}

function refund(api: Api, id: string): Promise<Answer<{ refundOrder: OrderNode }>> {
  return api.call(operator, `mutation ($id: ID!) { refundOrder(orderId: $id, reason: "it broke") { ${ORDER} } }`, {
    id,
  });
}

function complete(
  api: Api,
  id: string,
  refundRef: string,
  restock: boolean,
): Promise<Answer<{ completeRefund: OrderNode }>> {
  const text = `mutation ($id: ID!, $refundRef: String!, $restock: Boolean!) {
    completeRefund(orderId: $id, refundRef: $refundRef, restock: $restock) { ${ORDER} }
  }`;
  return api.call(operator, text, { id, refundRef, restock });
}

function refundPayment(api: Api, paymentRef: string, refundRef: string) {
  const text = `mutation ($p: String!, $r: String!) {
    refundPayment(paymentRef: $p, refundRef: $r) { refundRef refundedAt }
  }`;
  return api.call<{ refundPayment: object }>(operator, text, { p: paymentRef, r: refundRef });
}

/** The payment as refundsDue has it, or undefined where it is not due. */
async function dueOf(ref: string): Promise<object | undefined> {
  const text = "{ refundsDue { edges { node { paymentRef outcome orderId order { status } } } } }";
  type Data = { refundsDue: { edges: readonly { node: { paymentRef: string } }[] } };
  const { data } = await second.call<Data>(operator, text);
  const found = data?.refundsDue.edges.find(({ node }) => node.paymentRef === ref)?.node;
  if (!found) return undefined;
  const { paymentRef: _, ...rest } = found;
  return rest;
}

async function reservationOf(token: string, orderId: string): Promise<object | null | undefined> {
  const [s, r] = orderId.split(".");
  const text = "query ($s: ID!, $r: UUID!) { reservation(saleId: $s, requestId: $r) { status reasonCode reason } }";
  return (await second.call<{ reservation: object | null }>(token, text, { s, r })).data?.reservation;
}

async function unitsOf(api: Api, sale: TestSale): Promise<Partial<Units>> {
  const text = "query ($id: ID!) { sale(id: $id) { items { initial remaining } } }";
  const { data } = await api.call<{ sale: { items: Units[] } }>(null, text, { id: sale.id });
  return data?.sale.items[0] ?? {};
}

function watchUnits(api: Api, sale: TestSale) {
  const text = "subscription ($id: ID!) { saleUpdates(saleId: $id) { items { initial remaining } } }";
  return subscribe<{ items: Units[] }>("WebSocket", api, null, { query: text, variables: { id: sale.id } });
}

function isUnits(initial: number, remaining: number) {
  return ({ items }: { items: readonly Units[] }) => items[0]?.initial === initial && items[0].remaining === remaining;
}

/** What was done to a sale since it was opened, the first thing first. */
async function auditOf(sale: TestSale): Promise<string[]> {
  const text = "query ($id: ID!) { auditLog(saleId: $id) { edges { node { action actor reason details } } } }";
  type Entry = { action: string; actor: string; reason: string | null; details: string };
  const { data } = await second.call<{ auditLog: { edges: { node: Entry }[] } }>(operator, text, { id: sale.id });
  const lines = data?.auditLog.edges.map(
    ({ node }) => `${node.action} by ${node.actor}: ${node.reason} ${node.details}`,
  );
  return (lines ?? []).reverse().slice(2);
}
