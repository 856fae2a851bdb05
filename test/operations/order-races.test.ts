import { beforeAll, expect, it } from "vitest";
import type { OrderStatus } from "../../src/domain/stages.js";
import { SECOND } from "../../src/domain/time.js";
import { pause } from "../../src/lifecycle/pause.js";
import { cancelOrder } from "../../src/operations/cancel.js";
import { pay } from "../../src/operations/pay.js";
import type { Resources } from "../../src/resources.js";
import { type SeededRandom, seededRandom } from "../support/seed.js";
import { type Buyer, orderAll, orderId, PRICE, setPayBy, statusesOf } from "./order-support.js";
import { expireOrders, openProcess, openSale, type Stores, startStores, type TestSale } from "./support.js";

const ROUNDS = 2_000;
/** No new ones begin after that: on a machine that is short of breath fewer rounds have to do. */
const AT_MOST_MS = 15 * SECOND;
/** Rounds that go on at once. */
const WAVE = 50;
/** When the payment windows end: while the others are under way, which takes a wave some hundred milliseconds. */
const WINDOW_MS = [-10, 200] as const;

/** Nobody is turned away here for being late, however busy the machine is. */
const UNHURRIED = {
  deadlines: { requestMs: 50_000 },
  sql: { lockMs: 5_000, statementMs: 5_000 },
};

let stores: Stores;
/** Of each process: an API that pays and cancels, another one, and two workers that expire. */
let apis: Resources[];
let workers: Resources[];

beforeAll(async () => {
  stores = await startStores();
  const open = () => openProcess(stores, { tuning: UNHURRIED });
  [apis, workers] = await Promise.all([Promise.all([open(), open()]), Promise.all([open(), open()])]);
});

/** What somebody tried to do to an order, and what he was told. */
interface Attempt {
  readonly who: "payer" | "buyer" | "operator";
  readonly said: string;
}

/** The order of one round, and everybody who wants something of it. */
function contend(random: SeededRandom, sale: TestSale, requestId: string, buyer: Buyer): (() => Promise<Attempt>)[] {
  const id = orderId(sale, requestId);
  const payer = (paymentRef: string) => async (): Promise<Attempt> => {
    const report = { orderId: id, paymentRef, amountMinor: PRICE * buyer.quantity };
    return { who: "payer", said: (await pay(random.pick(apis), report)).outcome };
  };
  const cancelling = (command: Parameters<typeof cancelOrder>[1]) => async (): Promise<Attempt> => ({
    who: command.by,
    said: await cancelOrder(random.pick(apis), command).then(
      (order) => order.status,
      (error: { code?: string }) => error.code ?? String(error),
    ),
  });
  // Sometimes nobody but the expirer, sometimes all of them.
  const all = [
    { likely: 0.8, attempt: payer(`pay_${requestId}_1`) },
    { likely: 0.4, attempt: payer(`pay_${requestId}_2`) },
    { likely: 0.25, attempt: cancelling({ orderId: id, by: "buyer", buyerId: buyer.buyerId }) },
    { likely: 0.25, attempt: cancelling({ orderId: id, by: "operator", actor: "olga", reason: "a race" }) },
  ];
  const some = all.filter(({ likely }) => random.next() < likely).map(({ attempt }) => attempt);
  return random.shuffle(some);
}

/** Whether what everybody was told agrees with how the order ended. */
function expectOneWinner(status: OrderStatus, attempts: readonly Attempt[]): void {
  const told = (who: Attempt["who"]) => attempts.filter((attempt) => attempt.who === who).map(({ said }) => said);
  const payments = told("payer");
  const paid = payments.filter((said) => said === "PAID");
  const cancels = [...told("buyer"), ...told("operator")];
  expect(paid, status).toHaveLength(status === "PAID" ? 1 : 0);
  expect(payments.filter((said) => said !== "PAID")).toEqual(Array(payments.length - paid.length).fill("REFUND_DUE"));
  expect(cancels, status).toEqual(cancels.map(() => (status === "CANCELLED" ? "CANCELLED" : "CONFLICT")));
  if (status === "CANCELLED") expect(cancels).not.toEqual([]);
}

/** S, and money: each as cheap as a sum over one sale. Gives what does not add up. */
function findWrongSums(sale: TestSale) {
  return stores.sql(
    `WITH moved AS (
       SELECT coalesce(sum(quantity) FILTER (WHERE kind = 'LOCK'), 0) AS locked,
              coalesce(sum(quantity) FILTER (WHERE kind = 'RELEASE'), 0) AS released,
              coalesce(sum(quantity) FILTER (WHERE kind = 'SELL'), 0) AS sold
       FROM stock_movements WHERE "saleId" = $1
     ), ordered AS (
       SELECT coalesce(sum(quantity) FILTER (WHERE status = 'PENDING_PAYMENT'), 0) AS locked,
              coalesce(sum(quantity) FILTER (WHERE status = 'PAID'), 0) AS sold,
              count(*) FILTER (WHERE status = 'PAID') AS bought
       FROM orders WHERE "saleId" = $1
     ), money AS (
       SELECT count(*) FILTER (WHERE outcome = 'PAID' AND "refundDueAt" IS NULL) AS kept,
              count(*) FILTER (WHERE (outcome = 'PAID') = ("refundDueAt" IS NOT NULL)) AS undecided
       FROM payments WHERE "saleId" = $1
     )
     SELECT * FROM sale_items i, moved m, ordered o, money
     WHERE i."saleId" = $1
       AND (i.initial <> i.available + i.locked + i.sold + i."refundPending"
         OR i.locked <> m.locked - m.released - m.sold OR i.sold <> m.sold
         OR i.locked <> o.locked OR i.sold <> o.sold OR money.kept <> o.bought OR money.undecided <> 0)`,
    [sale.id],
  );
}

/** Orders that were paid after their window or expired in it, by the database's clock; a pause between its two readings aside. */
function findUntimely(sale: TestSale) {
  return stores.sql(
    `SELECT "requestId", status, "payBy", "updatedAt" FROM orders
     WHERE "saleId" = $1 AND (status = 'PAID' AND "paidAt" > "payBy" + interval '100 milliseconds'
                           OR status = 'EXPIRED' AND "updatedAt" < "payBy")`,
    [sale.id],
  );
}

/** Expires until everybody else is through and nothing is left unpaid; answers with how many it ended. */
async function expireUntilOver(worker: Resources, everybody: Promise<unknown>, sale: TestSale): Promise<number> {
  let through = false;
  void everybody.finally(() => {
    through = true;
  });
  let expired = 0;
  for (;;) {
    const last = through;
    expired += await expireOrders(worker);
    if (!last) {
      // So that the others have the processors too.
      await pause(5);
      continue;
    }
    const unpaid = await worker.db.order.count({ where: { saleId: sale.id, status: "PENDING_PAYMENT" } });
    if (unpaid === 0) return expired;
  }
}

it(`of pay, cancel and expire at the same instant one wins, in ${ROUNDS} rounds`, async () => {
  const started = performance.now();
  const random = seededRandom("order races");
  const [api, ...others] = apis as [Resources, ...Resources[]];
  const sale = await openSale(api, { initial: 5 * ROUNDS });
  const winners = { PAID: 0, CANCELLED: 0, EXPIRED: 0 };
  let newcomers = 0;
  const newcomer = (): Buyer => ({ buyerId: `b-${++newcomers}`, quantity: random.int(1, 3) });
  let buyers = Array.from({ length: WAVE }, newcomer);

  let round = 0;
  for (; round < ROUNDS && performance.now() - started < AT_MOST_MS; round += WAVE) {
    // Whose order ended without him having paid is back: Redis must have heard of it by now, on every process.
    const requestIds = await orderAll(round % 2 === 0 ? api : (others[0] ?? api), sale, buyers);
    const windows = requestIds.map(() => random.int(...WINDOW_MS));
    await setPayBy(stores, sale, requestIds, windows);
    const wanted = requestIds.map((requestId, at) => contend(random, sale, requestId, buyers[at] as Buyer));
    const all = Promise.all(wanted.map((some) => Promise.all(some.map((attempt) => attempt()))));
    const [attempts, ...expired] = await Promise.all([
      all,
      ...workers.map((worker) => expireUntilOver(worker, all, sale)),
    ]);

    const statuses = await statusesOf(stores, sale, requestIds);
    const ended = requestIds.map((requestId) => statuses.get(requestId) as keyof typeof winners);
    for (const [at, status] of ended.entries()) {
      expectOneWinner(status, attempts[at] ?? []);
      winners[status] += 1;
    }
    expect(expired.reduce((sum, count) => sum + count)).toBe(ended.filter((status) => status === "EXPIRED").length);
    expect(await findWrongSums(sale)).toEqual([]);
    buyers = buyers.map((buyer, at) => (ended[at] === "PAID" ? newcomer() : buyer));
  }
  console.log(`order races: ${round} rounds, ${JSON.stringify(winners)}`);
  for (const count of Object.values(winners)) expect(count).toBeGreaterThan(round / 50);
  expect(await findUntimely(sale)).toEqual([]);
  await stores.expectSound(sale);
});
