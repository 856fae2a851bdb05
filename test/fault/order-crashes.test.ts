import { randomUUID } from "node:crypto";
import { beforeAll, expect, test } from "vitest";
import { settleAndCheck } from "../support/invariants.js";
import {
  type Api,
  prepareSluice,
  reserve,
  type TestSale,
  type TestSluice,
  waitUntilDecided,
} from "../support/sluice.js";
import { query } from "../support/sql.js";
import { waitFor } from "../support/wait.js";

/** Killed at the first of these nothing was done, at the second all of it, and nobody was told. */
const BEFORE = { SLUICE_FAILPOINTS: "order.after_stock=kill" };
const AFTER = { SLUICE_FAILPOINTS: "order.after_commit=kill" };
const PRICE = 2_500;

let sluice: TestSluice;
let api: Api;
let number = 0;

beforeAll(async () => {
  sluice = await prepareSluice();
  api = await sluice.startApi();
});

interface Bought {
  readonly token: string;
  readonly requestId: string;
  readonly orderId: string;
}

/** A buyer with an unpaid order for the only unit of a sale. */
async function buyLast(): Promise<Bought & { sale: TestSale }> {
  const sale = await sluice.createSale(api, { initial: [1] });
  const [token, requestId] = [await sluice.token("buyer", `buyer-${++number}`), randomUUID()];
  await reserve(api, token, sale, { requestId });
  expect((await waitUntilDecided(api, token, sale.id, requestId)).status).toBe("SUCCESS");
  return { sale, token, requestId, orderId: `${sale.id}.${requestId}` };
}

const cancel = (api: Api, { token, orderId }: Bought) =>
  api.call<{ cancelOrder: { status: string } }>(token, "mutation ($id: ID!) { cancelOrder(orderId: $id) { status } }", {
    id: orderId,
  });
const pay = async (api: Api, { orderId }: Bought) =>
  api.call<{ confirmPayment: { outcome: string; order: { status: string } } }>(
    await sluice.token("payments", "provider"),
    `mutation ($id: ID!, $ref: String!, $amount: Int!) {
       confirmPayment(orderId: $id, paymentRef: $ref, amountMinor: $amount) { outcome order { status } }
     }`,
    { id: orderId, ref: `pay_${orderId}`, amount: PRICE },
  );

/** How many of each kind of movement the sale has, and how many payments. */
async function traces(sale: TestSale): Promise<Record<string, number>> {
  const rows = await query<{ kind: string; count: number }>(
    sluice.databaseUrl,
    `SELECT kind::text, count(*)::int AS count FROM stock_movements WHERE "saleId" = $1 AND "requestId" IS NOT NULL GROUP BY kind
     UNION ALL SELECT 'payment', count(*)::int FROM payments WHERE "saleId" = $1`,
    [sale.id],
  );
  return Object.fromEntries(rows.map(({ kind, count }) => [kind, count]));
}

/** Reserves once more as soon as that is possible: Redis has heard that the buyer holds nothing, and has the units again. */
async function waitUntilFree(token: string, sale: TestSale): Promise<void> {
  await waitFor(async () => (await reserve(api, token, sale)).data?.reserve.status === "QUEUED", {
    what: "the buyer to be free",
    timeoutMs: 20_000,
  });
}

/** Has it done by a process that dies of it. */
async function dieOf(doomed: Api, doing: () => Promise<unknown>): Promise<void> {
  // Refused for want of a store, as on a machine that is short of breath, it is sent again.
  const broken = () =>
    doing().then(
      () => false,
      () => true,
    );
  await waitFor(broken, { what: "the answer that never comes", timeoutMs: 30_000 });
  expect((await doomed.exited).signal).toBe("SIGKILL");
}

test("workers that are killed while they expire orders, before the commit and behind it, leave them to the next: each ends once", async () => {
  const first = await sluice.startWorker(BEFORE);
  const sale = await sluice.createSale(api, { initial: [10], paymentWindowSeconds: 1 });
  const tokens = await Promise.all(Array.from({ length: 10 }, () => sluice.token("buyer", `buyer-${++number}`)));
  const answers = await Promise.all(tokens.map((token) => reserve(api, token, sale)));
  expect(answers.map(({ data }) => data?.reserve.status)).toEqual(Array(10).fill("QUEUED"));
  await first.waitForLine(/failpoint order/);
  expect((await first.exited).signal).toBe("SIGKILL");
  expect(await traces(sale)).not.toHaveProperty("RELEASE");

  const second = await sluice.startWorker(AFTER);
  await second.waitForLine(/failpoint order/);
  expect((await second.exited).signal).toBe("SIGKILL");
  expect(await traces(sale)).toHaveProperty("RELEASE");

  await sluice.startWorker();
  await waitFor(async () => (await traces(sale)).RELEASE === 10, { what: "all of them to expire", timeoutMs: 30_000 });
  expect(await traces(sale)).toEqual({ LOCK: 10, RELEASE: 10, payment: 0 });
  await waitUntilFree(tokens[0] as string, sale);
  await settleAndCheck(sluice.databaseUrl, sluice.redis.url, sale.id, 20_000);
});

test("APIs that are killed while they cancel an order, before the commit and behind it: it is cancelled once, and the buyer is free", async () => {
  const [first, second] = await Promise.all([sluice.startApi(BEFORE), sluice.startApi(AFTER)]);
  const bought = await buyLast();
  const { sale, token } = bought;
  await dieOf(first, () => cancel(first, bought));
  expect(await traces(sale)).toEqual({ LOCK: 1, payment: 0 });
  expect((await reserve(api, token, sale)).data?.reserve.status).toBe("ALREADY_RESERVED");

  await dieOf(second, () => cancel(second, bought));
  expect(await traces(sale)).toEqual({ LOCK: 1, RELEASE: 1, payment: 0 });
  expect((await cancel(api, bought)).data?.cancelOrder.status).toBe("CANCELLED");
  // The repeat has told Redis nothing: the relay gives back the unit and frees the buyer.
  await waitUntilFree(token, sale);
  await settleAndCheck(sluice.databaseUrl, sluice.redis.url, sale.id, 20_000);
  expect(await traces(sale)).toEqual({ LOCK: 2, RELEASE: 1, payment: 0 });
});

test("APIs that are killed while they record a payment, before the commit and behind it: it is on record once, and pays once", async () => {
  const [first, second] = await Promise.all([sluice.startApi(BEFORE), sluice.startApi(AFTER)]);
  const bought = await buyLast();
  const { sale, token, requestId } = bought;
  await dieOf(first, () => pay(first, bought));
  expect(await traces(sale)).toEqual({ LOCK: 1, payment: 0 });

  await dieOf(second, () => pay(second, bought));
  expect(await traces(sale)).toEqual({ LOCK: 1, SELL: 1, payment: 1 });
  expect((await pay(api, bought)).data?.confirmPayment).toEqual({ outcome: "ALREADY_PAID", order: { status: "PAID" } });
  const reread = async () => (await reserve(api, token, sale, { requestId })).data?.reserve.reservation;
  await waitFor(async () => (await reread())?.version === 40, { what: "Redis to hear of it", timeoutMs: 20_000 });
  expect((await reread())?.order?.status).toBe("PAID");
  await settleAndCheck(sluice.databaseUrl, sluice.redis.url, sale.id, 20_000);
  expect(await traces(sale)).toEqual({ LOCK: 1, SELL: 1, payment: 1 });
});
