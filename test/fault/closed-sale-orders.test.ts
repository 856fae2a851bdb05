import { Redis } from "ioredis";
import { beforeAll, expect, test } from "vitest";
import { findBreaches, settleAndCheck } from "../support/invariants.js";
import { operate } from "../support/operate.js";
import {
  cancelOrder,
  confirmPayment,
  letPass,
  placeOrder,
  reserveInTheEnd,
  type TestOrder,
} from "../support/orders.js";
import { type Api, prepareSluice, type TestSale, type TestSluice } from "../support/sluice.js";
import { query } from "../support/sql.js";
import { subscribe } from "../support/subscriptions.js";
import { waitFor } from "../support/wait.js";

let sluice: TestSluice;
let api: Api;

beforeAll(async () => {
  sluice = await prepareSluice();
  [api] = await Promise.all([sluice.startApi(), sluice.startWorker()]);
});

/** A closed sale with orders of these buyers, none of them paid. */
async function closedSaleWith(subjects: readonly string[]): Promise<{ sale: TestSale; orders: TestOrder[] }> {
  const sale = await sluice.createSale(api, { initial: [10] });
  const orders = [];
  for (const subject of subjects) orders.push(await placeOrder(sluice, api, sale, subject));
  await operate(sluice, api, "closeSale", sale);
  return { sale, orders };
}

/** The sale is eight days older: Redis has forgotten it, as it does a week after its end. */
async function forget({ id }: TestSale): Promise<void> {
  await query(
    sluice.databaseUrl,
    `UPDATE sales SET "opensAt" = "opensAt" - interval '8 days', "closesAt" = "closesAt" - interval '8 days' WHERE id = $1`,
    [id],
  );
  const client = new Redis(sluice.redis.url);
  try {
    const keys = (await client.keys(`sluice:{${id}}:*`)).filter((key) => !key.includes(":q:"));
    expect(keys.length).toBeGreaterThan(3);
    await client.del(...keys);
  } finally {
    client.disconnect();
  }
}

async function statusOf({ id, token }: TestOrder): Promise<string | undefined> {
  const text = "query ($id: ID!) { order(id: $id) { status } }";
  return (await api.call<{ order: { status: string } }>(token, text, { id })).data?.order.status;
}

function watch({ id, requestId, token }: TestOrder) {
  const text = "subscription ($s: ID!, $r: UUID!) { reservationUpdates(saleId: $s, requestId: $r) { status version } }";
  return subscribe<{ status: string }>("WebSocket", api, token, {
    query: text,
    variables: { s: id.split(".")[0], r: requestId },
  });
}

async function payCancelAndLetExpire([paid, cancelled, expired]: readonly TestOrder[]): Promise<void> {
  if (!paid || !cancelled || !expired) throw new Error("three orders are needed");
  expect((await confirmPayment(sluice, api, paid.id)).data?.confirmPayment.outcome).toBe("PAID");
  expect((await cancelOrder(api, cancelled.token, cancelled.id)).data?.cancelOrder.status).toBe("CANCELLED");
  await letPass(sluice, expired);
  await waitFor(async () => (await statusOf(expired)) === "EXPIRED", { what: "the order to expire" });
}

test("a closed sale takes payments for the orders it has, and its unpaid ones are cancelled and expire", async () => {
  const { sale, orders } = await closedSaleWith(["payer", "canceller", "sleeper"]);
  const watching = orders.map(watch);
  for (const each of watching) expect((await each.next()).status).toBe("SUCCESS");
  await payCancelAndLetExpire(orders);
  const last = [];
  for (const { done, values } of watching) {
    expect(await done).toEqual({ kind: "completed" });
    last.push(values.at(-1)?.status);
  }
  expect(last).toEqual(["SUCCESS", "RELEASED", "RELEASED"]);
  // Closed it stays: what came back is not sold again.
  expect((await reserveInTheEnd(api, orders[1]?.token ?? "", sale)).status).toBe("ENDED");
  await settleAndCheck(sluice.databaseUrl, sluice.redis.url, sale.id);
});

test("so does a sale that closed more than a week ago, and Redis, which has forgotten it, is left in peace", async () => {
  const { sale, orders } = await closedSaleWith(["payer", "canceller", "sleeper", "returner"]);
  const returned = orders[3] as TestOrder;
  await confirmPayment(sluice, api, returned.id);
  await waitFor(async () => (await eventsOf(sale)).waiting === 0, { what: "what was before to be told" });
  const before = await eventsOf(sale);
  await forget(sale);
  const [epoch] = await epochOf(sale);

  await payCancelAndLetExpire(orders);
  const operator = await sluice.token("operator", "olga");
  const refunding = `mutation ($id: ID!) {
    refundOrder(orderId: $id, reason: "r") { status }
    completeRefund(orderId: $id, refundRef: "back", restock: true) { status }
  }`;
  const { data } = await api.call(operator, refunding, { id: returned.id });
  expect(data).toEqual({ refundOrder: { status: "REFUND_PENDING" }, completeRefund: { status: "REFUNDED" } });

  await waitFor(async () => (await eventsOf(sale)).waiting === 0, { what: "the events to be absorbed" });
  expect(await eventsOf(sale)).toEqual({ waiting: 0, applied: before.applied, absorbed: before.absorbed + 5 });
  expect(await epochOf(sale)).toEqual([epoch]);
  const breaches = await findBreaches(sluice.databaseUrl, sluice.redis.url, sale.id);
  expect(breaches).toEqual(["C: can't be told, not_loaded"]);
});

test("whoever asks about an order of such a sale is told how it stands, and can't have another", async () => {
  const { sale, orders } = await closedSaleWith(["asker", "asker-too"]);
  const [paid, cancelled] = orders as [TestOrder, TestOrder];
  await forget(sale);
  await confirmPayment(sluice, api, paid.id);
  await cancelOrder(api, cancelled.token, cancelled.id);
  for (const [order, status] of [[paid, "SUCCESS"] as const, [cancelled, "RELEASED"] as const]) {
    const { values, done } = watch(order);
    expect(await done).toEqual({ kind: "completed" });
    expect(values).toMatchObject([{ status }]);
    // Told to come again while this process has the sale's row as it was a second ago.
    const repeat = await reserveInTheEnd(api, order.token, sale, { requestId: order.requestId });
    expect(repeat).toMatchObject({ status: "DECIDED", reservation: { requestId: order.requestId, status } });
  }
  expect((await reserveInTheEnd(api, cancelled.token, sale)).status).toBe("ENDED");
});

async function eventsOf({ id }: TestSale): Promise<Record<"waiting" | "applied" | "absorbed", number>> {
  const [row] = await query<Record<"waiting" | "applied" | "absorbed", number>>(
    sluice.databaseUrl,
    `SELECT count(*) FILTER (WHERE "appliedAt" IS NULL)::int AS waiting,
            count(*) FILTER (WHERE "appliedAt" IS NOT NULL AND NOT absorbed)::int AS applied,
            count(*) FILTER (WHERE absorbed)::int AS absorbed
     FROM request_events WHERE "saleId" = $1`,
    [id],
  );
  if (!row) throw new Error("no count");
  return row;
}

function epochOf({ id }: TestSale) {
  return query(sluice.databaseUrl, "SELECT epoch FROM sales WHERE id = $1", [id]);
}
