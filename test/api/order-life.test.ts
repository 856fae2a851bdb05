import { randomUUID } from "node:crypto";
import { beforeAll, describe, expect, it } from "vitest";
import { settleAndCheck } from "../support/invariants.js";
import {
  cancelOrder,
  codeOf,
  confirmPayment,
  letPass,
  ORDER,
  type OrderNode,
  PRICE,
  placeOrder,
  reserveInTheEnd,
  type TestOrder,
} from "../support/orders.js";
import {
  type Api,
  prepareSluice,
  type Role,
  type TestSale,
  type TestSluice,
  waitUntilDecided,
} from "../support/sluice.js";
import { waitFor } from "../support/wait.js";

interface ReservationNode {
  readonly requestId: string;
  readonly status: string;
  readonly reasonCode: string | null;
  readonly reason: string | null;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly order: { readonly status: string } | null;
}

const RESERVATION = "requestId status reasonCode reason createdAt updatedAt order { status }";

let sluice: TestSluice;
let first: Api;
let second: Api;
let sale: TestSale;

beforeAll(async () => {
  sluice = await prepareSluice();
  [first, second] = await Promise.all([sluice.startApi(), sluice.startApi(), sluice.startWorker()]);
  sale = await sluice.createSale(first);
});

describe("confirmPayment", () => {
  const TEXT = 'mutation ($id: ID!) { confirmPayment(orderId: $id, paymentRef: "r", amountMinor: 2500) { outcome } }';

  it("pays the order, and says ALREADY_PAID to a repeat; buyers see that, and not by what", async () => {
    const order = await placeOrder(sluice, first, sale, "payer");
    const payment = { paymentRef: "pay_the_first" };
    const paid = { id: order.id, status: "PAID", buyerId: null, paymentRef: null, paidAt: expect.any(String) };
    const { data } = await confirmPayment(sluice, first, order.id, payment);
    expect(data?.confirmPayment).toEqual({ outcome: "PAID", order: paid });
    const repeat = await confirmPayment(sluice, second, order.id, payment);
    expect(repeat.data?.confirmPayment).toEqual({ outcome: "ALREADY_PAID", order: paid });
    expect(await readOrder(order, order.token)).toEqual(paid);
    const seenByOperator = { ...paid, buyerId: "payer", paymentRef: "pay_the_first" };
    expect(await readOrder(order, await sluice.token("operator", "olga"))).toEqual(seenByOperator);
    expect(await readOrder(order, await sluice.token("buyer", "somebody-else"))).toBeNull();
  });

  it("tells what came of money that can't buy, with the order as it is", async () => {
    const order = await placeOrder(sluice, first, sale, "odd-payer");
    const outcomeOf = async (orderId: string, more: { paymentRef?: string; amountMinor?: number } = {}) =>
      (await confirmPayment(sluice, first, orderId, more)).data?.confirmPayment;
    expect(await outcomeOf(order.id, { amountMinor: PRICE - 1 })).toMatchObject({
      outcome: "AMOUNT_MISMATCH",
      order: { status: "PENDING_PAYMENT" },
    });
    expect(await outcomeOf(order.id, { paymentRef: "pay_odd" })).toMatchObject({ outcome: "PAID" });
    expect(await outcomeOf(order.id)).toMatchObject({ outcome: "REFUND_DUE", order: { status: "PAID" } });
    for (const unknown of [`${sale.id}.${randomUUID()}`, "another-shop's-order"]) {
      expect(await outcomeOf(unknown)).toEqual({ outcome: "REFUND_DUE", order: null });
    }
    const other = await placeOrder(sluice, first, sale, "other-payer");
    expect(codeOf(await confirmPayment(sluice, first, other.id, { paymentRef: "pay_odd" }))).toBe("CONFLICT");
    expect(await readOrder(other, other.token)).toMatchObject({ status: "PENDING_PAYMENT" });
  });

  it("is for the role payments alone", async () => {
    const order = await placeOrder(sluice, first, sale, "not-a-payer");
    for (const role of ["buyer", "operator"] satisfies Role[]) {
      const answer = await first.call(await sluice.token(role, "not-a-payer"), TEXT, { id: order.id });
      expect([codeOf(answer), answer.data]).toEqual(["FORBIDDEN", null]);
    }
    expect(codeOf(await first.call(null, TEXT, { id: order.id }))).toBe("UNAUTHENTICATED");
    expect(await readOrder(order, order.token)).toMatchObject({ status: "PENDING_PAYMENT", paidAt: null });
  });
});

describe("cancelOrder", () => {
  it("gives the stock back, tells a repeat of the request so, and lets the buyer try again", async () => {
    const only = await sluice.createSale(first, { initial: [1] });
    const order = await placeOrder(sluice, first, only, "undecided");
    expect((await cancelOrder(first, order.token, order.id)).data?.cancelOrder.status).toBe("CANCELLED");

    const again = randomUUID();
    const anew = await reserveInTheEnd(second, order.token, only, { requestId: again });
    expect(anew.status).toBe("QUEUED");
    await waitUntilDecided(second, order.token, only.id, again);

    const released = {
      requestId: order.requestId,
      status: "RELEASED",
      reasonCode: "CANCELLED_BY_BUYER",
      reason: "You cancelled this order.",
      order: { status: "CANCELLED" },
    };
    const repeat = await repeatOf(order, only);
    expect(repeat).toMatchObject({ status: "DECIDED", reservation: released });
    const read = await reservationsOf(order, only);
    expect(read.reservation).toEqual(repeat?.reservation);
    expect(Date.parse(read.reservation.updatedAt)).toBeGreaterThan(Date.parse(read.reservation.createdAt));
    expect(read.myReservation).toMatchObject({ requestId: again, status: "SUCCESS", reasonCode: null, reason: null });
    expect(read.myOrders.edges.map(({ node }) => [node.id, node.status])).toEqual([
      [`${only.id}.${again}`, "PENDING_PAYMENT"],
      [order.id, "CANCELLED"],
    ]);
    // A late repeat must not end what is held now.
    expect((await cancelOrder(second, order.token, order.id)).data?.cancelOrder.status).toBe("CANCELLED");
    const third = await reserveInTheEnd(first, order.token, only);
    expect(third).toMatchObject({ status: "ALREADY_RESERVED", reservation: { requestId: again } });
    await settleAndCheck(sluice.databaseUrl, sluice.redis.url, only.id);
  });

  it("finds a buyer's own orders only, whichever case their UUID comes in", async () => {
    const order = await placeOrder(sluice, first, sale, "owner");
    const stranger = await sluice.token("buyer", "stranger");
    expect(codeOf(await cancelOrder(first, stranger, order.id))).toBe("NOT_FOUND");
    const ids = ["", sale.id, `${order.id}x`, ` ${order.id}`, order.requestId, `${sale.id}.${randomUUID()}`];
    for (const id of [...ids, `no-sale.${order.requestId}`]) {
      expect(codeOf(await cancelOrder(first, order.token, id)), id).toBe("NOT_FOUND");
    }
    for (const role of ["operator", "payments"] satisfies Role[]) {
      expect(codeOf(await cancelOrder(first, await sluice.token(role, "owner"), order.id))).toBe("FORBIDDEN");
    }
    expect(await readOrder(order, order.token)).toMatchObject({ status: "PENDING_PAYMENT" });
    const shouted = `${sale.id}.${order.requestId.toUpperCase()}`;
    expect((await cancelOrder(first, order.token, shouted)).data?.cancelOrder).toMatchObject({
      id: order.id,
      status: "CANCELLED",
      buyerId: null,
    });
  });

  it("of an order that is paid or has expired is CONFLICT, and says which", async () => {
    const paid = await placeOrder(sluice, first, sale, "paid");
    await confirmPayment(sluice, first, paid.id);
    const expired = await placeOrder(sluice, first, sale, "late");
    await letPass(sluice, expired);
    await waitFor(async () => (await readOrder(expired, expired.token))?.status === "EXPIRED", {
      what: "the order to expire",
    });
    for (const [order, status] of [[paid, "PAID"] as const, [expired, "EXPIRED"] as const]) {
      const answer = await cancelOrder(first, order.token, order.id);
      expect([codeOf(answer), answer.errors?.[0]?.message]).toEqual(["CONFLICT", expect.stringContaining(status)]);
      expect(await readOrder(order, order.token)).toMatchObject({ status });
    }
    const { reservation } = await reservationsOf(expired, sale);
    expect(reservation).toMatchObject({
      status: "RELEASED",
      reasonCode: "PAYMENT_EXPIRED",
      reason: "The order was not paid in time.",
    });
    expect(await repeatOf(expired, sale)).toMatchObject({ status: "DECIDED", reservation });
  });
});

describe("over two processes", () => {
  it("what is cancelled on one can be reserved again on the other at once, twenty times over", async () => {
    const only = await sluice.createSale(first, { initial: [1] });
    let order = await placeOrder(sluice, first, only, "wavering");
    for (let round = 0; round < 20; round += 1) {
      const [here, there] = round % 2 === 0 ? [first, second] : [second, first];
      expect(codeOf(await cancelOrder(here, order.token, order.id))).toBeNull();
      order = await placeOrder(sluice, there, only, "wavering");
    }
    await settleAndCheck(sluice.databaseUrl, sluice.redis.url, only.id);
  });

  it("orders that are paid while a worker lets them expire are one of both, and what was paid late is due back", async () => {
    const brief = await sluice.createSale(first, { paymentWindowSeconds: 1, initial: [12] });
    const orders = await Promise.all(
      Array.from({ length: 12 }, (_, at) => placeOrder(sluice, at % 2 ? first : second, brief, `brief-${at}`)),
    );
    const outcomes = await Promise.all(
      orders.map(async (order, at) => {
        // One after the other, from before the window's end until after the worker came by.
        const until = Date.now() + at * 150;
        await waitFor(() => Date.now() >= until, { what: "its turn" });
        return (await confirmPayment(sluice, at % 2 ? second : first, order.id)).data?.confirmPayment.outcome;
      }),
    );
    const ended = await waitFor(
      async () => {
        const now = await Promise.all(orders.map((order) => readOrder(order, order.token)));
        return now.every((order) => order?.status !== "PENDING_PAYMENT") && now;
      },
      { what: "every order to end" },
    );
    const statuses = ended.map((order) => order?.status);
    expect(statuses).toEqual(outcomes.map((outcome) => (outcome === "PAID" ? "PAID" : "EXPIRED")));
    expect(outcomes.filter((outcome) => outcome !== "PAID")).toContain("REFUND_DUE");
    await settleAndCheck(sluice.databaseUrl, sluice.redis.url, brief.id);
  });
});

async function readOrder(order: TestOrder, token: string): Promise<OrderNode | null | undefined> {
  const text = `query ($id: ID!) { order(id: $id) { ${ORDER} } }`;
  return (await second.call<{ order: OrderNode | null }>(token, text, { id: order.id })).data?.order;
}

/** The answer to the same request, sent again. */
async function repeatOf(order: TestOrder, { id: saleId, items }: TestSale) {
  const text = `mutation ($i: ReserveInput!) { reserve(input: $i) { status reservation { ${RESERVATION} } } }`;
  const input = { saleId, itemId: items[0]?.id, requestId: order.requestId };
  type Data = { reserve: { status: string; reservation: ReservationNode } };
  return (await second.call<Data>(order.token, text, { i: input })).data?.reserve;
}

async function reservationsOf(order: TestOrder, { id }: TestSale) {
  const text = `query ($s: ID!, $r: UUID!) {
    reservation(saleId: $s, requestId: $r) { ${RESERVATION} }
    myReservation(saleId: $s) { ${RESERVATION} }
    myOrders { edges { node { id status } } }
  }`;
  type Data = {
    reservation: ReservationNode;
    myReservation: ReservationNode;
    myOrders: { edges: readonly { node: OrderNode }[] };
  };
  const { data } = await first.call<Data>(order.token, text, { s: id, r: order.requestId });
  if (!data) throw new Error("the reservation can't be read");
  return data;
}
