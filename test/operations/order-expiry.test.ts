import { beforeAll, describe, expect, it } from "vitest";
import { SECOND } from "../../src/domain/time.js";
import { changeSaleState } from "../../src/operations/change-sale-state.js";
import { createExpirer } from "../../src/operations/expire.js";
import { pay } from "../../src/operations/pay.js";
import type { Resources } from "../../src/resources.js";
import { waitFor } from "../support/wait.js";
import { movedUnits, orderAll, orderByHand, orderId, PRICE, stageAfter, statusesOf, stockOf } from "./order-support.js";
import { transactionOnTheSide } from "./side.js";
import {
  ask,
  expireOrders,
  inRedis,
  letPass,
  openProcess,
  openSale,
  order,
  remaining,
  type Stores,
  startStores,
  type TestSale,
} from "./support.js";

let stores: Stores;
let worker: Resources;
let other: Resources;

beforeAll(async () => {
  stores = await startStores();
  [worker, other] = await Promise.all([openProcess(stores), openProcess(stores)]);
});

const people = (name: string, count: number) =>
  Array.from({ length: count }, (_, at) => ({ buyerId: `${name}-${at}`, quantity: 1 }));
const ends = (sale: TestSale, requestIds?: readonly string[]) =>
  statusesOf(stores, sale, requestIds).then((statuses) => [...new Set(statuses.values())]);

describe("orders that nobody pays", () => {
  it("expire, a hundred others get their units, and the movements add up to the unit", async () => {
    const sale = await openSale(worker, { initial: 100 });
    const first = await orderAll(worker, sale, people("a", 100));
    expect((await ask(worker, sale, "late")).kind).toBe("sold_out");
    expect(await expireOrders(worker)).toBe(0);
    await letPass(stores, sale);
    const [ofOne, ofOther] = await Promise.all([expireOrders(worker), expireOrders(other)]);
    expect(ofOne + ofOther).toBe(100);
    expect(await ends(sale)).toEqual(["EXPIRED"]);
    expect(await remaining(stores, sale)).toBe(100);
    await stores.expectSound(sale);

    const second = await orderAll(other, sale, people("b", 100));
    expect((await ask(worker, sale, "late")).kind).toBe("sold_out");
    for (const [at, requestId] of second.entries()) {
      const report = { orderId: orderId(sale, requestId), paymentRef: `pay_${requestId}`, amountMinor: PRICE };
      expect((await pay(at % 2 ? worker : other, report)).outcome).toBe("PAID");
    }
    expect(await expireOrders(worker)).toBe(0);
    expect(await ends(sale, first)).toEqual(["EXPIRED"]);
    expect(await ends(sale, second)).toEqual(["PAID"]);
    expect(await movedUnits(stores, sale)).toEqual({ ADJUST: 100, LOCK: 200, RELEASE: 100, SELL: 100 });
    expect(await stockOf(stores, sale)).toEqual({
      initial: 100,
      available: 0,
      locked: 0,
      sold: 100,
      refundPending: 0,
    });
    await stores.expectSound(sale);
  });

  it("tell their buyers why, and leave them free to reserve again", async () => {
    const sale = await openSale(worker, { initial: 5 });
    const requestId = await order(worker, sale, "anna", { quantity: 2 });
    await letPass(stores, sale);
    await expireOrders(worker);
    expect(await inRedis(stores, sale, requestId)).toMatchObject({
      ...stageAfter("EXPIRED"),
      reason: "PAYMENT_EXPIRED",
    });
    expect(await ask(other, sale, "anna", { requestId, quantity: 2 })).toMatchObject({
      kind: "decided",
      reservation: { stage: "EXPIRED", reason: "PAYMENT_EXPIRED" },
    });
    await order(other, sale, "anna", { quantity: 5 });
    await stores.expectSound(sale);
  });

  it("of a closed sale expire like any other's", async () => {
    const sale = await openSale(worker, { initial: 5 });
    await order(worker, sale, "anna");
    await changeSaleState(worker, { saleId: sale.id, action: "close", actor: "olga" });
    await letPass(stores, sale);
    expect(await expireOrders(worker)).toBe(1);
    expect(await ends(sale)).toEqual(["EXPIRED"]);
    await stores.expectSound(sale);
  });

  it("that somebody else holds just now are left to him, and their neighbours expire at once", async () => {
    const sale = await openSale(worker, { initial: 5 });
    const [held, free] = (await orderAll(worker, sale, people("a", 2))) as [string, string];
    await letPass(stores, sale);
    const side = await transactionOnTheSide(stores, 'SELECT 1 FROM orders WHERE "requestId" = $1 FOR UPDATE', [held]);
    expect(await expireOrders(worker)).toBe(1);
    expect(await statusesOf(stores, sale)).toEqual(
      new Map([
        [held, "PENDING_PAYMENT"],
        [free, "EXPIRED"],
      ]),
    );
    await side.rollback();
    expect(await expireOrders(worker)).toBe(1);
    await stores.expectSound(sale);
  });

  it("of sales whose stock somebody holds for long don't keep those of others, now or later", async () => {
    const sales = await Promise.all(Array.from({ length: 3 }, () => openSale(worker, { initial: 5 })));
    const [free, ...stuck] = sales;
    if (!free) throw new Error("no sale");
    for (const sale of stuck) await order(worker, sale, "anna");
    for (const sale of stuck) await letPass(stores, sale);
    const held = 'SELECT 1 FROM sale_items WHERE "saleId" = ANY($1) FOR UPDATE';
    const side = await transactionOnTheSide(stores, held, [stuck.map(({ id }) => id)]);
    const expirer = createExpirer(worker);
    for (const buyer of ["ben", "cleo", "dora"]) {
      // Each is due when a turn is under way that can't get on with the others.
      const requestId = await order(worker, free, buyer);
      await letPass(stores, free);
      await expirer.turn();
      expect(await ends(free, [requestId])).toEqual(["EXPIRED"]);
    }
    for (const sale of stuck) expect(await ends(sale)).toEqual(["PENDING_PAYMENT"]);
    await side.rollback();
    await waitFor(
      async () => {
        await expirer.turn();
        return (await Promise.all(stuck.map((sale) => ends(sale)))).flat().every((status) => status === "EXPIRED");
      },
      { what: "the orders that were held" },
    );
    await expirer.settled();
    for (const sale of sales) await stores.expectSound(sale);
  });

  it("expire also on a database that is too slow for many at once: fewer and fewer, until some get through", async () => {
    const sale = await openSale(worker, { initial: 40 });
    await orderByHand(worker, stores, sale, 40);
    await letPass(stores, sale);
    await stores.sql(`CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN PERFORM pg_sleep(0.05); RETURN NEW; END $$`);
    await stores.sql("CREATE TRIGGER slow BEFORE UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION dawdle()");
    try {
      const expirer = createExpirer(worker);
      await waitFor(
        async () => {
          await expirer.turn();
          return (await ends(sale)).includes("EXPIRED");
        },
        { what: "the first orders to end" },
      );
      await expirer.settled();
    } finally {
      await stores.sql("DROP TRIGGER slow ON orders");
    }
    await expireOrders(worker);
    expect(await ends(sale)).toEqual(["EXPIRED"]);
    await stores.expectSound(sale);
  });

  it("expire by the thousand, with two workers at it, a small part of a minute later", async () => {
    const count = 3_000;
    const sale = await openSale(worker, { initial: count });
    await orderByHand(worker, stores, sale, count);
    expect(await remaining(stores, sale)).toBe(0);
    await letPass(stores, sale);
    const started = performance.now();
    let expired = 0;
    for (let some = -1; some !== 0; expired += some) {
      const both = await Promise.all([expireOrders(worker), expireOrders(other)]);
      some = both[0] + both[1];
    }
    const seconds = (performance.now() - started) / SECOND;
    console.log(`${count} due orders expired in ${seconds.toFixed(2)} s`);
    expect(expired).toBe(count);
    expect(await remaining(stores, sale)).toBe(count);
    await stores.expectSound(sale);
    // 10,000 in a minute is what must be.
    expect(seconds).toBeLessThan(18);
  });
});
