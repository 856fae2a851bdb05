import { beforeAll, describe, expect, it } from "vitest";
import { adjustStock } from "../../src/operations/adjust-stock.js";
import { cancelOrder } from "../../src/operations/cancel.js";
import { pay } from "../../src/operations/pay.js";
import { completeRefund, refundOrder } from "../../src/operations/refund.js";
import type { Resources } from "../../src/resources.js";
import { atEndOfFile } from "../support/test-file.js";
import { waitFor } from "../support/wait.js";
import { orderId, PRICE } from "./order-support.js";
import {
  ask,
  expireOrders,
  letPass,
  openProcess,
  openSale,
  order,
  type Stores,
  saleField,
  startStores,
  type TestSale,
} from "./support.js";

let stores: Stores;
let sluice: Resources;
let other: Resources;

beforeAll(async () => {
  stores = await startStores();
  [sluice, other] = await Promise.all([openProcess(stores), openProcess(stores)]);
});

/** What is published of a sale from now on. */
async function listenTo(sale: TestSale): Promise<{ kind: string; seq?: number; requests?: unknown }[]> {
  const heard: { kind: string }[] = [];
  const channel = `sluice:{${sale.id}}:events`;
  const subscriber = stores.client.duplicate();
  atEndOfFile(() => subscriber.disconnect());
  subscriber.on("message", (_channel, text: string) => heard.push(JSON.parse(text)));
  await subscriber.subscribe(channel);
  return heard;
}

const refund = async (sale: TestSale, requestId: string) => {
  const id = orderId(sale, requestId);
  await pay(sluice, { orderId: id, paymentRef: `pay_${requestId}`, amountMinor: PRICE });
  await refundOrder(sluice, { orderId: id, reason: "it broke", actor: "olga" });
};
const complete = (sale: TestSale, requestId: string, restock: boolean) =>
  completeRefund(sluice, { orderId: orderId(sale, requestId), refundRef: `re_${requestId}`, restock, actor: "olga" });

type Way = (sale: TestSale, requestId: string) => Promise<unknown>;
const WAYS: [string, Way, "requests" | "reloaded"][] = [
  [
    "its buyer cancels",
    (sale, requestId) => cancelOrder(sluice, { orderId: orderId(sale, requestId), by: "buyer", buyerId: "anna" }),
    "requests",
  ],
  [
    "an operator cancels",
    (sale, requestId) =>
      cancelOrder(sluice, { orderId: orderId(sale, requestId), by: "operator", actor: "olga", reason: "a mistake" }),
    "requests",
  ],
  ["nobody pays", (sale) => letPass(stores, sale).then(() => expireOrders(sluice)), "requests"],
  [
    "it is refunded and restocked",
    (sale, requestId) => refund(sale, requestId).then(() => complete(sale, requestId, true)),
    "requests",
  ],
  [
    "a unit is added",
    (sale) =>
      adjustStock(sluice, { saleId: sale.id, itemId: sale.itemId, delta: 1, reason: "one more", actor: "olga" }),
    "reloaded",
  ],
];

describe("a sold-out item", () => {
  it.each(WAYS)("is on sale again when %s: everybody hears of it, and one may have it", async (_name, way, kind) => {
    const sale = await openSale(sluice, { initial: 1 });
    const requestId = await order(sluice, sale, "anna");
    for (const by of [sluice, other]) expect((await ask(by, sale, "ben")).kind).toBe("sold_out");
    const generation = async () => Number(await saleField(stores, sale, `g:${sale.itemId}`));
    const before = await generation();
    const heard = await listenTo(sale);
    await way(sale, requestId);
    expect(await generation()).toBe(before + 1);
    await waitFor(() => heard.some((message) => message.kind === kind), { what: "the news" });
    const takers = await Promise.all(
      ["ben", "carl", "dora"].map((buyerId, at) => ask(at % 2 ? sluice : other, sale, buyerId)),
    );
    expect(takers.map((taker) => taker.kind).toSorted()).toEqual(["queued", "sold_out", "sold_out"]);
  });

  it("stays sold out when the unit that comes back is written off", async () => {
    const sale = await openSale(sluice, { initial: 1 });
    const requestId = await order(sluice, sale, "anna");
    expect((await ask(other, sale, "ben")).kind).toBe("sold_out");
    const before = await saleField(stores, sale, `g:${sale.itemId}`);
    await refund(sale, requestId);
    await complete(sale, requestId, false);
    expect(await saleField(stores, sale, `g:${sale.itemId}`)).toBe(before);
    for (const buyerId of ["ben", "anna"]) expect((await ask(other, sale, buyerId)).kind).toBe("sold_out");
    await stores.expectSound(sale);
  });
});
