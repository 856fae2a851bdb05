import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { adjustStock } from "../../src/operations/adjust-stock.js";
import { cancelOrder } from "../../src/operations/cancel.js";
import { changeSaleState } from "../../src/operations/change-sale-state.js";
import { relay } from "../../src/operations/relay.js";
import { writeOrders } from "../../src/operations/write-orders.js";
import type { Resources } from "../../src/resources.js";
import { seededRandom } from "../support/seed.js";
import { waitFor } from "../support/wait.js";
import { auditsOf, movedUnits, orderId, stockOf } from "./order-support.js";
import {
  ask,
  changeUntold,
  epochInDatabase,
  makeDraft,
  openProcess,
  openSale,
  order,
  queueMany,
  queueOne,
  remaining,
  type Stores,
  startStores,
  type TestSale,
} from "./support.js";

let stores: Stores;
let sluice: Resources;
let other: Resources;
let sale: TestSale;

beforeAll(async () => {
  stores = await startStores();
  [sluice, other] = await Promise.all([openProcess(stores), openProcess(stores)]);
});

beforeEach(async () => {
  sale = await openSale(sluice, { initial: 10 });
});

const adjust = (delta: number, by = sluice, more: { itemId?: string; reason?: string; saleId?: string } = {}) =>
  adjustStock(by, { saleId: sale.id, itemId: sale.itemId, delta, reason: "a recount", actor: "olga", ...more });
const close = () => changeSaleState(sluice, { saleId: sale.id, action: "close", actor: "olga" });
const CONFLICT = { code: "CONFLICT" };

describe("an item's stock", () => {
  it("grows and shrinks: in force when it returns, with a movement and a line in the log each", async () => {
    const grown = await adjust(7);
    expect(grown.items).toMatchObject([{ id: sale.itemId, initial: 17 }]);
    expect(await remaining(stores, sale)).toBe(17);
    const shrunk = await adjust(-12, other);
    expect(shrunk.items).toMatchObject([{ id: sale.itemId, initial: 5 }]);
    expect(await remaining(stores, sale)).toBe(5);
    expect(await stockOf(stores, sale)).toMatchObject({ initial: 5, available: 5 });
    expect(await movedUnits(stores, sale)).toEqual({ ADJUST: 10 + 7 - 12 });
    expect(await auditsOf(stores, sale)).toMatchObject([
      { action: "adjustStock", actor: "olga", reason: "a recount", details: { itemId: sale.itemId, delta: 7 } },
      { action: "adjustStock", details: { delta: -12 } },
    ]);
    await order(sluice, sale, "anna", { quantity: 5 });
    expect((await ask(other, sale, "ben")).kind).toBe("sold_out");
    await stores.expectSound(sale);
  });

  it("never shrinks below what is ordered, or was promised and waits in the queue", async () => {
    await order(sluice, sale, "anna", { quantity: 3 });
    const queued = await queueOne(sluice, sale, "ben", { quantity: 4 });
    await expect(adjust(-4)).rejects.toMatchObject(CONFLICT);
    expect(await auditsOf(stores, sale)).toEqual([]);
    await adjust(-3);
    expect(await remaining(stores, sale)).toBe(0);
    await expect(adjust(-1)).rejects.toMatchObject(CONFLICT);
    const [written] = await writeOrders(sluice, sale.id, [queued]);
    expect(written).toMatchObject({ decision: { outcome: "ORDERED" } });
    expect(await stockOf(stores, sale)).toMatchObject({ initial: 7, available: 0, locked: 7 });
    await stores.expectSound(sale);
  });

  it("takes in what was given back and not told yet: never twice", async () => {
    const requestId = await order(sluice, sale, "anna", { quantity: 5 });
    await changeUntold(sluice, sale, requestId);
    await adjust(-10);
    expect(await remaining(stores, sale)).toBe(0);
    await relay(sluice);
    expect(await remaining(stores, sale)).toBe(0);
    await adjust(2);
    await order(sluice, sale, "anna", { quantity: 2 });
    await stores.expectSound(sale);
  });

  it("is adjusted by two at once as by one after the other", async () => {
    await Promise.all([adjust(5), adjust(3, other), adjust(-2), adjust(-6, other)]);
    expect(await stockOf(stores, sale)).toMatchObject({ initial: 10, available: 10 });
    expect(await auditsOf(stores, sale)).toHaveLength(4);
    await stores.expectSound(sale);
    const settled = await Promise.allSettled([adjust(-7), adjust(-7, other)]);
    expect(settled.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
    expect(settled.find((one) => one.status === "rejected")?.reason).toMatchObject(CONFLICT);
    expect(await stockOf(stores, sale)).toMatchObject({ initial: 3, available: 3 });
    await stores.expectSound(sale);
  });

  it("of a draft is what it is opened with", async () => {
    sale = await makeDraft(sluice, { initial: 2 });
    await adjust(3);
    await expect(adjust(-6)).rejects.toMatchObject(CONFLICT);
    expect(await epochInDatabase(stores, sale)).toBe(0);
    expect(await stores.client.keys(`sluice:{${sale.id}}:*`)).toEqual([]);
    await changeSaleState(sluice, { saleId: sale.id, action: "open", actor: "olga" });
    expect(await remaining(stores, sale)).toBe(5);
    await stores.expectSound(sale);
  });

  it("of a closed sale can be put right, and nobody buys it", async () => {
    await close();
    await adjust(-4);
    expect(await remaining(stores, sale)).toBe(6);
    expect((await ask(sluice, sale, "anna")).kind).toBe("ended");
    await stores.expectSound(sale);
  });

  it("of a sale that Redis has forgotten is put right in the database alone", async () => {
    await close();
    await stores.sql(
      `UPDATE sales SET "opensAt" = now() - interval '9 days', "closesAt" = now() - interval '8 days' WHERE id = $1`,
      [sale.id],
    );
    await stores.redis.flushAll();
    await adjust(-4);
    await expect(adjust(-7)).rejects.toMatchObject(CONFLICT);
    expect(await stockOf(stores, sale)).toMatchObject({ initial: 6, available: 6 });
    expect(await movedUnits(stores, sale)).toEqual({ ADJUST: 6 });
    expect(await stores.client.keys(`sluice:{${sale.id}}:*`)).toEqual([]);
  });

  it.each([0, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 31, -(2 ** 31)])(
    "is not adjusted by %d",
    async (delta) => {
      await expect(adjust(delta)).rejects.toMatchObject({ code: "BAD_USER_INPUT" });
    },
  );

  it("is not adjusted beyond what its column holds, without a reason, or where there is none", async () => {
    await expect(adjust(2 ** 31 - 1)).rejects.toMatchObject(CONFLICT);
    await expect(adjust(-(2 ** 31) + 1)).rejects.toMatchObject(CONFLICT);
    await expect(adjust(1, sluice, { reason: " " })).rejects.toMatchObject({ code: "BAD_USER_INPUT" });
    for (const wrong of ["nobody's", "", "a b", "x".repeat(65), "\0"]) {
      await expect(adjust(1, sluice, { itemId: wrong })).rejects.toMatchObject({ code: "NOT_FOUND" });
      await expect(adjust(1, sluice, { saleId: wrong })).rejects.toMatchObject({ code: "NOT_FOUND" });
    }
    expect(await stockOf(stores, sale)).toMatchObject({ initial: 10, available: 10 });
    expect(await auditsOf(stores, sale)).toEqual([]);
    await stores.expectSound(sale);
    await adjust(2 ** 31 - 11);
    expect(await remaining(stores, sale)).toBe(2 ** 31 - 1);
    await adjust(-(2 ** 31) + 1);
    expect(await stockOf(stores, sale)).toMatchObject({ initial: 0 });
  });
});

it("stock that is adjusted under a stream of buyers is never oversold, and the database refuses none of them", async () => {
  const random = seededRandom("adjusting under a stream");
  sale = await openSale(sluice, { initial: 20 });
  let streaming = true;
  let answered = 0;
  const said = new Set<string>();
  const buy = async (by: Resources, buyerId: string) => {
    const quantity = random.int(1, 3);
    const outcome = await ask(by, sale, buyerId, { quantity }).catch((error: { code: string }) => ({
      kind: error.code,
    }));
    said.add(outcome.kind);
    answered += 1;
    if (!("reservation" in outcome) || outcome.kind !== "queued") return;
    const { requestId } = outcome.reservation;
    await writeOrders(by, sale.id, [requestId]);
    if (random.next() < 0.7) await cancelOrder(by, { orderId: orderId(sale, requestId), by: "buyer", buyerId });
  };
  const streams = [sluice, other].flatMap((by, process) =>
    Array.from({ length: 6 }, async (_, stream) => {
      for (let turn = 0; streaming; turn += 1) await buy(by, `s-${process}-${stream}-${turn}`);
    }),
  );
  const refused: string[] = [];
  for (let turn = 0; turn < 12; turn += 1) {
    const before = answered;
    const delta = random.pick([-6, -3, -1, 2, 4, 8]);
    await adjust(delta, random.pick([sluice, other])).catch((error: { code: string }) => refused.push(error.code));
    await waitFor(() => answered > before + 5, { what: "the stream to go on" });
  }
  streaming = false;
  await Promise.all(streams);
  await Promise.all([sluice, other].flatMap(({ journal, loads }) => [journal.drained(), loads.settled()]));
  const waiting = await stores.sql<{ requestId: string }>(
    'SELECT "requestId" FROM requests WHERE "saleId" = $1 AND outcome IS NULL',
    [sale.id],
  );
  await writeOrders(
    sluice,
    sale.id,
    waiting.map(({ requestId }) => requestId),
  );
  await relay(sluice);
  const outcomes = await stores.sql('SELECT DISTINCT outcome FROM requests WHERE "saleId" = $1', [sale.id]);
  expect(outcomes).toEqual([{ outcome: "ORDERED" }]);
  expect(new Set(refused)).toEqual(refused.length > 0 ? new Set(["CONFLICT"]) : new Set());
  console.log(`adjusting under a stream: ${answered} answers, ${12 - refused.length} of 12 adjusted`);
  expect(said).toContain("queued");
  await stores.expectSound(sale);
});

it("a whole queue of promises is kept through an adjustment", async () => {
  const requestIds = await queueMany(sluice, sale, 10);
  await expect(adjust(-1)).rejects.toMatchObject(CONFLICT);
  await adjust(1);
  expect(await remaining(stores, sale)).toBe(1);
  await writeOrders(other, sale.id, requestIds);
  await adjust(-1);
  await stores.expectSound(sale);
});
