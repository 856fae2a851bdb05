import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { cancelOrder } from "../../src/operations/cancel.js";
import { pay } from "../../src/operations/pay.js";
import { refundOrder } from "../../src/operations/refund.js";
import { relay } from "../../src/operations/relay.js";
import { writeOrders } from "../../src/operations/write-orders.js";
import type { Resources } from "../../src/resources.js";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy.js";
import { waitFor } from "../support/wait.js";
import { holdStatement } from "./hold.js";
import { movedUnits, orderId, PRICE, stageAfter, statusesOf, stockOf } from "./order-support.js";
import { transactionOnTheSide, waitForBlocked } from "./side.js";
import {
  ask,
  inRedis,
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
/** Reaches its database through a network that can be hurt. */
let remote: Resources;
let proxy: TcpProxy;
let sale: TestSale;

beforeAll(async () => {
  stores = await startStores();
  proxy = await startTcpProxy(stores.databaseUrl);
  const tuning = { sql: { lockMs: 10_000, statementMs: 10_000 } };
  [sluice, remote] = await Promise.all([
    openProcess(stores, { tuning }),
    openProcess(stores, { databaseUrl: proxy.url(stores.databaseUrl), tuning }),
  ]);
  await stores.sql(`
    -- A COMMIT waits here for whoever holds this lock exclusively.
    CREATE FUNCTION pass_gate() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      PERFORM pg_advisory_xact_lock_shared(4711);
      RETURN NULL;
    END $$;
    CREATE CONSTRAINT TRIGGER pass_gate AFTER INSERT ON request_events DEFERRABLE INITIALLY DEFERRED
      FOR EACH ROW EXECUTE FUNCTION pass_gate();`);
});

beforeEach(async () => {
  sale = await openSale(sluice, { initial: 10 });
});

const closeGate = () => transactionOnTheSide(stores, "SELECT pg_advisory_xact_lock(4711)", []);
const statusOf = async (requestId: string) => (await statusesOf(stores, sale, [requestId])).get(requestId);
const report = (requestId: string) => ({
  orderId: orderId(sale, requestId),
  paymentRef: `pay_${requestId}`,
  amountMinor: PRICE,
});
const payments = () =>
  stores.sql('SELECT outcome, "refundDueAt" IS NOT NULL AS due FROM payments WHERE "saleId" = $1', [sale.id]);
const cancel = (by: Resources, requestId: string) =>
  cancelOrder(by, { orderId: orderId(sale, requestId), by: "buyer", buyerId: "anna" });

/** Runs `work` on the remote process, and loses the reply to its COMMIT once that is done. */
async function losingReplyToCommit<Result>(work: () => Promise<Result>, isDone: () => Promise<boolean>) {
  const gate = await closeGate();
  const working = work().then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  );
  await waitForBlocked(stores);
  proxy.swallowReplies();
  await gate.commit();
  await waitFor(isDone, { what: "the COMMIT to be done" });
  proxy.heal();
  proxy.cut({ once: true });
  return working;
}

describe("a reply to COMMIT that gets lost", () => {
  it("of a payment: it is looked up, and is PAID; the same report again is ALREADY_PAID", async () => {
    const requestId = await order(sluice, sale, "anna");
    const answer = await losingReplyToCommit(
      () => pay(remote, report(requestId)),
      async () => (await statusOf(requestId)) === "PAID",
    );
    expect(answer).toMatchObject({ value: { outcome: "PAID", order: { status: "PAID" } } });
    expect(await pay(sluice, report(requestId))).toMatchObject({ outcome: "ALREADY_PAID" });
    expect(await payments()).toEqual([{ outcome: "PAID", due: false }]);
    await relay(sluice);
    expect(await inRedis(stores, sale, requestId)).toMatchObject(stageAfter("PAID"));
    await stores.expectSound(sale);
  });

  it("of a payment that is still being committed: whoever reports it again gets the outcome of the first", async () => {
    const requestId = await order(sluice, sale, "anna");
    const gate = await closeGate();
    const first = pay(remote, report(requestId)).catch((error: Error) => error);
    await waitForBlocked(stores);
    proxy.cut({ once: true });
    expect(await first).toBeInstanceOf(Error);
    const again = [pay(sluice, report(requestId)), pay(remote, report(requestId))];
    await gate.commit();
    expect((await Promise.all(again)).map(({ outcome }) => outcome)).toEqual(["ALREADY_PAID", "ALREADY_PAID"]);
    expect(await payments()).toEqual([{ outcome: "PAID", due: false }]);
    await relay(sluice);
    await stores.expectSound(sale);
  });

  it("of a cancellation: its repeat finds it done, and the relay frees the buyer", async () => {
    const requestId = await order(sluice, sale, "anna", { quantity: 4 });
    const answer = await losingReplyToCommit(
      () => cancel(remote, requestId),
      async () => (await statusOf(requestId)) === "CANCELLED",
    );
    expect(answer).toHaveProperty("error");
    expect((await ask(sluice, sale, "anna")).kind).toBe("already_reserved");
    expect(await cancel(sluice, requestId)).toMatchObject({ status: "CANCELLED" });
    await relay(sluice);
    await order(sluice, sale, "anna", { quantity: 5 });
    expect(await movedUnits(stores, sale)).toMatchObject({ RELEASE: 4 });
    await stores.expectSound(sale);
  });

  it("of a refund: its repeat finds it done", async () => {
    const requestId = await order(sluice, sale, "anna");
    await pay(sluice, report(requestId));
    const refund = (by: Resources) =>
      refundOrder(by, { orderId: orderId(sale, requestId), reason: "it broke", actor: "olga" });
    const answer = await losingReplyToCommit(
      () => refund(remote),
      async () => (await statusOf(requestId)) === "REFUND_PENDING",
    );
    expect(answer).toHaveProperty("error");
    expect(await refund(sluice)).toMatchObject({ status: "REFUND_PENDING" });
    expect(await movedUnits(stores, sale)).toMatchObject({ REFUND_START: 1 });
    await relay(sluice);
    await stores.expectSound(sale);
  });
});

describe("a payment", () => {
  it("of the right amount that comes while its order is being written is no mismatch", async () => {
    const requestId = await queueOne(sluice, sale, "anna");
    // It has looked for the order and found none to be paid; now the order is written.
    const held = holdStatement(sluice, "AS late");
    const paying = pay(held.resources, report(requestId));
    await Promise.race([held.reached, paying]);
    await writeOrders(sluice, sale.id, [requestId]);
    held.letGo();
    expect(await paying).toMatchObject({ outcome: "PAID", order: { status: "PAID" } });
    expect(await payments()).toEqual([{ outcome: "PAID", due: false }]);
    await stores.expectSound(sale);
  });

  it("is done without Redis, which hears of it later; so is what undoes it", async () => {
    const network = await startTcpProxy(stores.redis.url);
    const cutOff = await openProcess(stores, { redisUrl: network.url(stores.redis.url) });
    const [anna, ben] = [await order(sluice, sale, "anna"), await order(sluice, sale, "ben")];
    network.cut();
    for (const requestId of [anna, ben]) {
      expect(await pay(cutOff, report(requestId))).toMatchObject({ outcome: "PAID" });
    }
    await refundOrder(cutOff, { orderId: orderId(sale, ben), reason: "it broke", actor: "olga" });
    expect(await inRedis(stores, sale, anna)).toMatchObject(stageAfter("PENDING_PAYMENT"));
    expect(await stockOf(stores, sale)).toMatchObject({ sold: 1, refundPending: 1, available: 8 });
    await relay(sluice);
    expect(await inRedis(stores, sale, anna)).toMatchObject(stageAfter("PAID"));
    expect(await inRedis(stores, sale, ben)).toMatchObject(stageAfter("REFUND_PENDING"));
    expect(await remaining(stores, sale)).toBe(8);
    await stores.expectSound(sale);
  });
});
