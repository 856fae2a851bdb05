import { randomUUID } from "node:crypto";
import { beforeAll, beforeEach, expect, it } from "vitest";
import { settleAndCheck } from "../support/invariants.js";
import { cancelOrder, confirmPayment, placeOrder, reserveInTheEnd, type TestOrder } from "../support/orders.js";
import type { NodeProcess } from "../support/processes.js";
import { type Api, prepareSluice, type TestSale, type TestSluice } from "../support/sluice.js";
import { type Subscription, subscribe, TRANSPORTS, type Transport } from "../support/subscriptions.js";

interface Value {
  readonly status: string;
  readonly reasonCode: string | null;
  readonly version: number;
  readonly order: { readonly status: string; readonly payBy: string } | null;
}

interface SaleValue {
  readonly items: readonly { readonly remaining: number; readonly soldOut: boolean }[];
}

const COMPLETED = { kind: "completed" };
const QUEUED = "QUEUED";
const UNPAID = "SUCCESS, PENDING_PAYMENT";
const PAID = "SUCCESS, PAID";
const EXPIRED = "RELEASED, EXPIRED: PAYMENT_EXPIRED";
/** What a machine with a lot to do may take more. */
const SLACK_MS = 3_000;

let sluice: TestSluice;
let first: Api;
let second: Api;
let worker: NodeProcess | null = null;
let sale: TestSale;

beforeAll(async () => {
  sluice = await prepareSluice();
  [first, second] = await Promise.all([sluice.startApi(), sluice.startApi()]);
});

beforeEach(async () => {
  sale = await sluice.createSale(first);
});

// Comes first: there is no worker yet, so that QUEUED is seen.
it("a reservation that is paid is QUEUED, then an order to be paid, then PAID, and there it completes", async () => {
  const [token, requestId] = [await sluice.token("buyer", "anna"), randomUUID()];
  const watching = TRANSPORTS.map((transport) => watch(token, requestId, { transport, api: second }));
  await reserveInTheEnd(first, token, sale, { requestId });
  for (const each of watching) await each.until(says(QUEUED), QUEUED);
  await startWorker();
  for (const each of watching) await each.until(says(UNPAID), UNPAID);
  await confirmPayment(sluice, first, `${sale.id}.${requestId}`);
  for (const { done, values } of watching) {
    expect(await done).toEqual(COMPLETED);
    expect(values.map(inWords)).toEqual([QUEUED, UNPAID, PAID]);
    expectGrowing(values);
  }
});

it("one that isn't paid is RELEASED within two seconds, and what was sold out is on sale for those who wait", async () => {
  await startWorker();
  const brief = await sluice.createSale(first, { initial: [1], paymentWindowSeconds: 2 });
  const stock = watchStock(second, brief);
  const [token, requestId] = [await sluice.token("buyer", "late"), randomUUID()];
  const watching = watch(token, requestId, { api: second, of: brief });
  await reserveInTheEnd(first, token, brief, { requestId });
  const [waiter, again] = [await sluice.token("buyer", "waiter"), randomUUID()];
  expect((await reserveInTheEnd(second, waiter, brief, { requestId: again })).status).toBe("SOLD_OUT");
  await stock.until(({ items }) => items[0]?.soldOut === true, "the item to be sold out");

  expect(await watching.done).toEqual(COMPLETED);
  const tookMs = Date.now() - Date.parse(watching.values.at(-1)?.order?.payBy ?? "");
  expect(tookMs).toBeLessThan(2_000 + SLACK_MS);
  expect(watching.values.map(inWords).slice(-2)).toEqual([UNPAID, EXPIRED]);
  expectGrowing(watching.values);

  await stock.until(({ items }) => items[0]?.remaining === 1, "the unit to be back", 1_000 + SLACK_MS);
  expect((await reserveInTheEnd(second, waiter, brief, { requestId: again })).status).toBe("QUEUED");
  await settleAndCheck(sluice.databaseUrl, sluice.redis.url, brief.id);
});

it("one that is cancelled completes, by whomever it was", async () => {
  await startWorker();
  const orders = [await placeOrder(sluice, first, sale, "own"), await placeOrder(sluice, first, sale, "seller's")];
  const watching = orders.map(({ token, requestId }) => watch(token, requestId, { api: second }));
  for (const each of watching) await each.until(says(UNPAID), UNPAID);
  await cancelOrder(first, orders[0]?.token ?? "", orders[0]?.id ?? "");
  await operate('cancelOrderByOperator(orderId: $id, reason: "r")', orders[1]);
  for (const [at, { done, values }] of watching.entries()) {
    expect(await done).toEqual(COMPLETED);
    const by = at === 0 ? "CANCELLED_BY_BUYER" : "CANCELLED_BY_OPERATOR";
    expect(values.map(inWords)).toEqual([UNPAID, `RELEASED, CANCELLED: ${by}`]);
  }
});

it("opened late it gives the present state: of what is over once and completes, of a refund until it is done", async () => {
  await startWorker();
  const [paid, cancelled] = [
    await placeOrder(sluice, first, sale, "paid"),
    await placeOrder(sluice, first, sale, "cancelled"),
  ];
  await confirmPayment(sluice, first, paid.id);
  await cancelOrder(first, cancelled.token, cancelled.id);
  for (const transport of TRANSPORTS) {
    const late = watch(paid.token, paid.requestId, { transport });
    expect(await late.done).toEqual(COMPLETED);
    expect(late.values.map(inWords)).toEqual([PAID]);
    const later = watch(cancelled.token, cancelled.requestId, { transport });
    expect(await later.done).toEqual(COMPLETED);
    expect(later.values.map(inWords)).toEqual(["RELEASED, CANCELLED: CANCELLED_BY_BUYER"]);
  }
  await operate('refundOrder(orderId: $id, reason: "r")', paid);
  const refunding = watch(paid.token, paid.requestId, { api: second });
  expect(inWords(await refunding.next())).toBe("SUCCESS, REFUND_PENDING");
  await operate('completeRefund(orderId: $id, refundRef: "back", restock: true)', paid);
  expect(await refunding.done).toEqual(COMPLETED);
  expect(refunding.values.map(inWords)).toEqual(["SUCCESS, REFUND_PENDING", "RELEASED, REFUNDED: REFUNDED"]);
  expectGrowing(refunding.values);
});

it.each([false, true])("what is paid while Redis is away is heard when it is back (empty: %s)", async (wiped) => {
  await startWorker();
  const [paying, cancelling] = [
    await placeOrder(sluice, first, sale, `payer-${wiped}`),
    await placeOrder(sluice, first, sale, `leaver-${wiped}`),
  ];
  const open = [paying, cancelling].flatMap(({ token, requestId }) =>
    TRANSPORTS.map((transport) => watch(token, requestId, { transport, api: second })),
  );
  for (const each of open) await each.until(says(UNPAID), UNPAID);
  await sluice.redis.stop();
  expect((await confirmPayment(sluice, first, paying.id)).data?.confirmPayment.outcome).toBe("PAID");
  expect((await cancelOrder(first, cancelling.token, cancelling.id)).data?.cancelOrder.status).toBe("CANCELLED");
  await sluice.redis.restart({ wiped });
  const over = [PAID, PAID, ...Array(2).fill("RELEASED, CANCELLED: CANCELLED_BY_BUYER")];
  for (const [at, { done, values }] of open.entries()) {
    expect(await done).toEqual(COMPLETED);
    expect(values.map(inWords)).toEqual([UNPAID, over[at]]);
    expectGrowing(values);
  }
  await settleAndCheck(sluice.databaseUrl, sluice.redis.url, sale.id);
});

it.each(["order.after_stock", "order.after_commit"])(
  "an order that a worker was expiring when it died (%s) is expired by the next, and heard of",
  async (failpoint) => {
    await endWorker();
    const brief = await sluice.createSale(first, { paymentWindowSeconds: 1 });
    const [token, requestId] = [await sluice.token("buyer", "unlucky"), randomUUID()];
    const watching = watch(token, requestId, { api: second, of: brief });
    await reserveInTheEnd(first, token, brief, { requestId });
    const doomed = await sluice.startWorker({ SLUICE_FAILPOINTS: `${failpoint}=kill` });
    await doomed.exited;
    await startWorker();
    expect(await watching.done).toEqual(COMPLETED);
    expect(watching.values.map(inWords).at(-1)).toBe(EXPIRED);
    expectGrowing(watching.values);
    await settleAndCheck(sluice.databaseUrl, sluice.redis.url, brief.id);
  },
);

async function startWorker(): Promise<void> {
  worker ??= await sluice.startWorker();
}

async function endWorker(): Promise<void> {
  worker?.kill("SIGKILL");
  await worker?.exited;
  worker = null;
}

function watch(
  token: string,
  requestId: string,
  options: { transport?: Transport; api?: Api; of?: TestSale } = {},
): Subscription<Value> {
  const { transport = "WebSocket", api = first, of = sale } = options;
  const query = `subscription ($s: ID!, $r: UUID!) {
    reservationUpdates(saleId: $s, requestId: $r) { status reasonCode version order { status payBy } }
  }`;
  return subscribe<Value>(transport, api, token, { query, variables: { s: of.id, r: requestId } });
}

function watchStock(api: Api, { id }: TestSale): Subscription<SaleValue> {
  const query = "subscription ($id: ID!) { saleUpdates(saleId: $id) { items { remaining soldOut } } }";
  return subscribe<SaleValue>("WebSocket", api, null, { query, variables: { id } });
}

/** One of the operators' mutations. Throws where it is refused. */
async function operate(field: string, order: TestOrder | undefined): Promise<void> {
  const text = `mutation ($id: ID!) { ${field} { status } }`;
  const { errors } = await first.call(await sluice.token("operator", "olga"), text, { id: order?.id });
  if (errors) throw new Error(JSON.stringify(errors));
}

function inWords({ status, order, reasonCode }: Value): string {
  return `${status}${order ? `, ${order.status}` : ""}${reasonCode ? `: ${reasonCode}` : ""}`;
}

const says = (words: string) => (value: Value) => inWords(value) === words;

function expectGrowing(values: readonly Value[]): void {
  const versions = values.map(({ version }) => version);
  expect(versions).toEqual([...new Set(versions)].sort((one, two) => one - two));
}
