import { randomUUID } from "node:crypto";
import { beforeAll, describe, expect, it } from "vitest";
import { readAcceptedBuyers } from "../../src/admission/accepted-buyers.js";
import { adjustStock } from "../../src/operations/adjust-stock.js";
import { changeSaleState } from "../../src/operations/change-sale-state.js";
import { loadSale } from "../../src/operations/load.js";
import { writeOrders } from "../../src/operations/write-orders.js";
import type { RedisLink } from "../../src/redis/link.js";
import type { Resources } from "../../src/resources.js";
import {
  acceptOnly,
  ask,
  changeUntold,
  epochInDatabase,
  expireOrders,
  letPass,
  openProcess,
  openSale,
  order,
  queueOne,
  type Stores,
  startStores,
  type TestSale,
} from "../operations/support.js";
import { waitFor } from "../support/wait.js";
import { cancel, come, counted, isShut, restockUnheard, STAYS, shut, untilOpen, WAIT_MS } from "./gate-support.js";

let stores: Stores;
let sluice: Resources;
let other: Resources;

beforeAll(async () => {
  stores = await startStores();
  const open = () => openProcess(stores, { tuning: { soldOut: STAYS } });
  [sluice, other] = await Promise.all([open(), open()]);
});

/** A sale whose one unit was ordered. */
async function soldOutSale(): Promise<{ sale: TestSale; requestId: string }> {
  const sale = await openSale(sluice, { initial: 1 });
  return { sale, requestId: await order(sluice, sale, "anna") };
}

describe("a stranger", () => {
  it("is answered without a command to Redis", async () => {
    const { sale } = await soldOutSale();
    await shut(sluice, sale);
    const before = await counted(sluice, "requests_total");
    const commands = await commandCounts(stores);
    for (let at = 0; at < 500; at += 1) expect(await come(sluice, sale, `new-${at}`)).toEqual({ kind: "sold_out" });
    const after = await counted(sluice, "requests_total");
    // Looks like a buyer: one in a hundred may, of a filter that is full.
    const asked = after.maybe - before.maybe;
    expect(asked).toBeLessThan(25);
    expect(after.answer - before.answer).toBe(500 - asked);
    const since = await commandCounts(stores);
    // By themselves, some times a second: is Redis there, and is what is published heard?
    for (const name of ["ping", "publish", "info"]) delete since[name];
    for (const [name, calls] of Object.entries(since)) since[name] = calls - (commands[name] ?? 0);
    expect(Object.fromEntries(Object.entries(since).filter(([, calls]) => calls > 0))).toEqual(
      asked > 0 ? expect.objectContaining({ evalsha: asked }) : {},
    );
  });

  it("who asks for more than he may is told that, and nonsense is refused, as without the gate", async () => {
    const { sale } = await soldOutSale();
    await shut(sluice, sale);
    expect(await come(sluice, sale, "ben", { quantity: 6 })).toEqual({ kind: "limit_exceeded", maxPerBuyer: 5 });
    for (const quantity of [0, -1, 1.5]) {
      await expect(come(sluice, sale, "ben", { quantity })).rejects.toMatchObject({ code: "BAD_USER_INPUT" });
    }
    expect(isShut(sluice, sale)).toBe(true);
  });
});

describe("a buyer who was accepted", () => {
  it("keeps his answer, however far his request has come", async () => {
    const sale = await openSale(sluice, { initial: 6 });
    const ids: Record<string, string> = {};
    ids.queued = await queueOne(sluice, sale, "queued");
    ids.ordered = await order(sluice, sale, "ordered");
    ids.paid = await order(sluice, sale, "paid");
    ids.cancelled = await order(sluice, sale, "cancelled");
    for (const [buyerId, change] of [["paid", "pay"] as const, ["cancelled", "cancel"] as const]) {
      await changeUntold(sluice, sale, ids[buyerId] as string, change);
    }
    await queueOne(sluice, sale, "last-1");
    ids.pending = (await acceptOnly(sluice, sale, "pending")).requestId;
    for (const by of [sluice, other]) await shut(by, sale);
    const repeats = async (by: Resources) => {
      const outcomes: Record<string, string> = {};
      for (const [buyerId, requestId] of Object.entries(ids)) {
        outcomes[buyerId] = (await come(by, sale, buyerId, { requestId })).kind;
      }
      return outcomes;
    };
    const decided = { ordered: "decided", paid: "decided", cancelled: "decided" };
    for (const by of [sluice, other]) {
      expect(await repeats(by)).toEqual({ ...decided, queued: "queued", pending: "queued" });
      expect(isShut(by, sale)).toBe(true);
    }
    const { queued: requestId = "" } = ids;
    expect((await come(sluice, sale, "queued", { requestId, quantity: 2 })).kind).toBe("request_conflict");
    expect((await come(sluice, sale, "queued")).kind).toBe("already_reserved");
  });

  it("is found also if he is decided, and leaves the line, between the two readings", async () => {
    const sale = await openSale(sluice, { initial: 1 });
    const { requestId } = await acceptOnly(sluice, sale, "anna");
    const decide = async () => {
      await come(sluice, sale, "anna", { requestId });
      await writeOrders(sluice, sale.id, [requestId]);
    };
    let decided = false;
    /** Does so behind the first reading that there is, of whichever store. */
    const andDecide = async <Reply>(reading: Promise<Reply>): Promise<Reply> => {
      const reply = await reading;
      if (!decided) {
        decided = true;
        await decide();
      }
      return reply;
    };
    const redis: RedisLink = { ...sluice.redis, run: (command) => andDecide(sluice.redis.run(command)) };
    const reads = new Proxy(sluice.reads, {
      get: (target, name) =>
        name === "$queryRaw"
          ? (...args: Parameters<typeof target.$queryRaw>) => andDecide(target.$queryRaw(...args))
          : Reflect.get(target, name),
    });
    const buyers = await readAcceptedBuyers({ redis, reads }, { saleId: sale.id, itemId: sale.itemId }, 1_000);
    expect(decided).toBe(true);
    expect(buyers?.test("anna")).toBe(true);
    expect(buyers?.test("ben")).toBe(false);
  });

  it("is missed by no page: thousands in line, and thousands in the database", async () => {
    const sale = await openSale(sluice, { initial: 700 });
    const names = (from: string, count: number) => Array.from({ length: count }, (_, at) => `${from}-${at + 1}`);
    await insertEnded(stores, sale, 12_001);
    await Promise.all(names("line", 700).map((buyerId) => acceptOnly(sluice, sale, buyerId)));
    const buyers = await readAcceptedBuyers(sluice, { saleId: sale.id, itemId: sale.itemId }, 100_000);
    const missed = [...names("line", 700), ...names("old", 12_001)].filter((buyerId) => !buyers?.test(buyerId));
    expect(missed).toEqual([]);
    const strangers = names("new", 1_000).filter((buyerId) => buyers?.test(buyerId));
    expect(strangers.length).toBeLessThan(30);
  });

  it("of another item is a stranger", async () => {
    const { sale } = await soldOutSale();
    await insertEnded(stores, { ...sale, itemId: "another" }, 10);
    await insertEnded(stores, sale, 10, "own");
    const buyers = await readAcceptedBuyers(sluice, { saleId: sale.id, itemId: sale.itemId }, 1_000);
    expect([buyers?.test("old-5"), buyers?.test("own-5"), buyers?.test("anna")]).toEqual([false, true, true]);
  });
});

describe("what opens the gate of every process", () => {
  type Way = (sale: TestSale, requestId: string) => Promise<unknown>;
  const ways: [string, Way][] = [
    ["a cancellation", (sale, requestId) => cancel(sluice, sale, "anna", requestId)],
    ["an expiry", (sale) => letPass(stores, sale).then(() => expireOrders(sluice))],
    [
      "an adjustment",
      (sale) => adjustStock(sluice, { saleId: sale.id, itemId: sale.itemId, delta: 1, reason: "more", actor: "olga" }),
    ],
  ];
  it.each(ways)("%s, by its message alone; and one may have the unit", async (_name, way) => {
    const { sale, requestId } = await soldOutSale();
    for (const by of [sluice, other]) await shut(by, sale);
    await way(sale, requestId);
    for (const by of [sluice, other]) await untilOpen(by, sale);
    const taken = randomUUID();
    expect((await come(sluice, sale, "ben", { requestId: taken })).kind).toBe("queued");
    for (const by of [sluice, other]) {
      await shut(by, sale);
      expect((await come(by, sale, "ben", { requestId: taken })).kind).toBe("queued");
      expect((await come(by, sale, "carl")).kind).toBe("sold_out");
    }
  });

  it("a pause: it wins, and after it the gate is shut again", async () => {
    const { sale } = await soldOutSale();
    for (const by of [sluice, other]) await shut(by, sale);
    await changeSaleState(other, { saleId: sale.id, action: "pause", reason: "a look", actor: "olga" });
    for (const by of [sluice, other]) {
      await untilOpen(by, sale);
      expect((await come(by, sale, "ben")).kind).toBe("paused");
    }
    await changeSaleState(other, { saleId: sale.id, action: "resume", actor: "olga" });
    for (const by of [sluice, other]) await shut(by, sale);
    await changeSaleState(sluice, { saleId: sale.id, action: "close", actor: "olga" });
    await untilOpen(other, sale);
    expect((await come(other, sale, "ben")).kind).toBe("ended");
  });

  it("a load, which begins another epoch with other buyers", async () => {
    const { sale } = await soldOutSale();
    for (const by of [sluice, other]) await shut(by, sale);
    await loadSale(other, sale.id, { reason: "asked", mendsEpoch: await epochInDatabase(stores, sale) });
    for (const by of [sluice, other]) await untilOpen(by, sale);
    const read = await counted(sluice, "filters_total");
    await shut(sluice, sale);
    expect((await counted(sluice, "filters_total")).read).toBe(read.read + 1);
  });

  it("the end of the window, by Redis' clock", async () => {
    const sale = await openSale(sluice, { initial: 1 });
    await order(sluice, sale, "anna");
    await stores.sql(`UPDATE sales SET "closesAt" = clock_timestamp() + interval '3 seconds' WHERE id = $1`, [sale.id]);
    await sluice.sales.read(sale.id);
    await loadSale(sluice, sale.id, { reason: "asked", mendsEpoch: await epochInDatabase(stores, sale) });
    await waitFor(async () => isShut(sluice, sale) || (await come(sluice, sale, "ben")).kind === "ended", {
      what: "the gate to be shut, or the sale to have ended on a slow machine",
      timeoutMs: WAIT_MS,
    });
    await waitFor(async () => (await come(sluice, sale, "ben")).kind === "ended", {
      what: "the sale to have ended",
      timeoutMs: WAIT_MS,
    });
  });
});

describe("bounds", () => {
  it("takes an item of 100,000 accepted requests, and none of more", async () => {
    const { sale } = await soldOutSale();
    await insertEnded(stores, sale, 99_999);
    await shut(sluice, sale);
    for (const buyerId of ["anna", "old-1", "old-50000", "old-99999"]) {
      const before = await counted(sluice, "requests_total");
      await come(sluice, sale, buyerId);
      expect((await counted(sluice, "requests_total")).maybe).toBe(before.maybe + 1);
    }
    await insertEnded(stores, sale, 1, "one-more");
    for (let at = 0; !(await counted(other, "filters_total")).too_many; at += 1) await come(other, sale, `new-${at}`);
    for (let at = 0; at < 50; at += 1) expect((await come(other, sale, `new-${at}`)).kind).toBe("sold_out");
    expect(isShut(other, sale)).toBe(false);
  });

  it("gives no gate to more items than it may, as long as the others are asked for", async () => {
    const small = await openProcess(stores, { tuning: { soldOut: { ...STAYS, items: 1 } } });
    const [first, second] = [await soldOutSale(), await soldOutSale()];
    await shut(small, first.sale);
    for (let at = 0; at < 50; at += 1) await come(small, second.sale, `new-${at}`);
    expect([isShut(small, first.sale), isShut(small, second.sale)]).toEqual([true, false]);
    expect((await counted(small, "items"))[""]).toBe(1);
  });
});

it("who was accepted through this process is no stranger to it, also if nobody hears that units came back", async () => {
  const { sale } = await soldOutSale();
  await shut(sluice, sale);
  await restockUnheard(stores, sale);
  const requestId = randomUUID();
  // As one who was sent to Redis before, or since he looks like a buyer.
  expect((await ask(sluice, sale, "ben", { requestId })).kind).toBe("queued");
  expect((await come(sluice, sale, "ben", { requestId })).kind).toBe("queued");
});

it("a unit that nobody hears of is on sale when the lease is over, however many ask", async () => {
  const quick = await openProcess(stores, { tuning: { soldOut: { heardWithinMs: 30_000 } } });
  const { sale } = await soldOutSale();
  await shut(quick, sale);
  await restockUnheard(stores, sale);
  let answer = await come(quick, sale, "new-0");
  for (let at = 1; answer.kind === "sold_out"; at += 1) answer = await come(quick, sale, `new-${at}`);
  expect(answer.kind).toBe("queued");
});

/** How often Redis was asked what, so far. */
async function commandCounts({ client }: Stores): Promise<Record<string, number>> {
  const stats = await client.info("commandstats");
  return Object.fromEntries(
    [...stats.matchAll(/cmdstat_([a-z|]+):calls=(\d+)/g)].map(([, name = "", calls]) => [name, Number(calls)]),
  );
}

/** Requests of that many buyers for an item, ended long ago. */
async function insertEnded(stores: Stores, sale: TestSale, count: number, name = "old"): Promise<void> {
  await stores.sql(
    `INSERT INTO requests ("saleId", "requestId", "buyerId", "itemId", quantity, epoch, seq, "acceptedAt", "dueAt",
                           "queuedEpoch", outcome, "decidedAt")
     SELECT $1, gen_random_uuid(), $4 || '-' || n, $2, 1, 1, 900000000 + n, now(), now(), 1, 'FAILED', now()
     FROM generate_series(1, $3::int) n`,
    [sale.id, sale.itemId, count, name],
  );
}
