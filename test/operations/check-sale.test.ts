import { randomUUID } from "node:crypto";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Tx } from "../../src/db/client.js";
import { countUnfinished, inSnapshot } from "../../src/db/invariants.js";
import { HOUR } from "../../src/domain/time.js";
import { checkSale, type FindingKind, type SaleCheck } from "../../src/operations/check-sale.js";
import type { Resources } from "../../src/resources.js";
import {
  acceptOnly,
  ask,
  changeUntold,
  journalByHand,
  openProcess,
  openSale,
  order,
  queueMany,
  type Stores,
  startStores,
  type TestSale,
} from "./support.js";

/** What is counted here must not depend on how busy the machine is: nothing is given up for being late. */
const UNHURRIED = {
  deadlines: { requestMs: 50_000, journalMs: 40_000, redisCommandMs: 30_000 },
  sql: { statementMs: 30_000, lockMs: 20_000 },
};

let stores: Stores;
let sluice: Resources;
let sale: TestSale;

beforeAll(async () => {
  stores = await startStores();
  sluice = await openProcess(stores, { tuning: UNHURRIED });
});

beforeEach(async () => {
  sale = await openSale(sluice, { initial: 50 });
});

const check = (boundMs = 0) => checkSale(sluice, sale.id, boundMs);

/** What was found wrong, in short. */
const found = ({ findings }: SaleCheck) =>
  Object.fromEntries(findings.map(({ kind, invariant, count, shown }) => [kind, { invariant, count, shown }]));

const kinds = (result: SaleCheck): FindingKind[] => result.findings.map(({ kind }) => kind).sort();

describe("a sound sale", () => {
  it("has no finding, and its units told: ordered, and offered by Redis", async () => {
    await order(sluice, sale, "anna", { quantity: 2 });
    await ask(sluice, sale, "bert");
    await sluice.journal.drained();
    expect(await check(HOUR)).toEqual({
      saleId: sale.id,
      findings: [],
      uncompared: null,
      items: [{ itemId: sale.itemId, initial: 50, ordered: 2, offered: 47 }],
      unfinished: { undecided: 1, parked: 0, eventsNotApplied: 0, pendingInRedis: 1 },
    });
  });

  it("stays sound while units that come back are on their way to Redis", async () => {
    const requestId = await order(sluice, sale, "anna", { quantity: 2 });
    await changeUntold(sluice, sale, requestId);
    expect(await check()).toMatchObject({ findings: [], uncompared: null, unfinished: { eventsNotApplied: 1 } });
  });

  it("is never taken for broken while it is under way", async () => {
    const own = await openSale(sluice, { initial: 200 });
    let busy = true;
    const checks: SaleCheck[] = [];
    const looking = (async () => {
      while (busy) checks.push(await checkSale(sluice, own.id, HOUR));
    })();
    const shop = async (lane: number) => {
      for (let n = 0; n < 10; n += 1) {
        // On a machine that is too busy some are refused, which is no matter here.
        const requestId = await order(sluice, own, `buyer-${lane}-${n}`).catch(() => null);
        if (requestId && n % 3 !== 2) await changeUntold(sluice, own, requestId, n % 3 === 0 ? "cancel" : "pay");
      }
    };
    try {
      await Promise.all(Array.from({ length: 20 }, (_, lane) => shop(lane)));
    } finally {
      busy = false;
      await looking;
    }
    const sizes = new Set(checks.map(({ items }) => items[0]?.ordered));
    expect(sizes.size).toBeGreaterThan(1);
    expect(checks.flatMap(({ findings }) => findings)).toEqual([]);
  });
});

describe("U is broken", () => {
  it("by a buyer with two valid orders", async () => {
    await order(sluice, sale, "anna");
    await order(sluice, sale, "bert");
    await stores.sql('DROP INDEX IF EXISTS "orders_saleId_activeBuyerId_key"');
    await stores.sql(`UPDATE requests SET "buyerId" = 'anna' WHERE "saleId" = $1`, [sale.id]);
    await stores.sql(`UPDATE orders SET "buyerId" = 'anna', "activeBuyerId" = 'anna' WHERE "saleId" = $1`, [sale.id]);
    expect(found(await check())).toEqual({
      buyers_twice: { invariant: "U", count: 1, shown: [{ id: "anna", expected: 1, actual: 2 }] },
    });
  });

  it("by a buyer with more units than one may have", async () => {
    await order(sluice, sale, "anna", { quantity: 4 });
    await stores.sql('UPDATE sales SET "maxPerBuyer" = 3 WHERE id = $1', [sale.id]);
    expect(found(await check())).toEqual({
      buyers_above_limit: { invariant: "U", count: 1, shown: [{ id: "anna", expected: 3, actual: 4 }] },
    });
  });

  it("by an order that nobody was promised, also one that is no longer valid", async () => {
    const requestId = randomUUID();
    await stores.sql(
      `INSERT INTO orders ("saleId", "requestId", "buyerId", "itemId", quantity, "totalMinor", currency, status, reason, "payBy")
       VALUES ($1, $2, 'anna', $3, 1, 100, 'EUR', 'CANCELLED', 'CANCELLED_BY_BUYER', now())`,
      [sale.id, requestId, sale.itemId],
    );
    const actual = `1 of ${sale.itemId} for anna`;
    expect(found(await check()).stories).toEqual({
      invariant: "U",
      count: 1,
      shown: [{ id: requestId, expected: "no order", actual }],
    });
  });

  it("by an order of somebody else than its request", async () => {
    const requestId = await order(sluice, sale, "anna");
    await stores.sql(`UPDATE orders SET "buyerId" = 'eve', "activeBuyerId" = 'eve' WHERE "saleId" = $1`, [sale.id]);
    const [expected, actual] = ["anna", "eve"].map((buyer) => `1 of ${sale.itemId} for ${buyer}`);
    expect(found(await check())).toEqual({
      stories: { invariant: "U", count: 1, shown: [{ id: requestId, expected, actual }] },
    });
  });
});

describe("C is broken", () => {
  const stockKey = () => `sluice:{${sale.id}}:stock`;

  it.each([
    ["one unit too many", "51"],
    ["one too few", "49"],
    ["nonsense", "fifty"],
  ])("by Redis offering %s", async (_what, text) => {
    await stores.client.hset(stockKey(), sale.itemId, text);
    expect(found(await check())).toEqual({
      offers: { invariant: "C", count: 1, shown: [{ id: sale.itemId, expected: 50, actual: text }] },
    });
  });

  it("by an item that Redis doesn't have", async () => {
    await stores.client.hdel(stockKey(), sale.itemId);
    expect(found(await check()).offers?.shown).toEqual([{ id: sale.itemId, expected: 50, actual: "nothing" }]);
  });

  it("by nothing, and is not judged, where the sale is not in Redis", async () => {
    await stores.client.del(`sluice:{${sale.id}}:sale`);
    expect(await check()).toMatchObject({ findings: [], uncompared: "not_loaded" });
  });
});

describe("T is broken", () => {
  it("by a request that has waited too long, and not by one that has not", async () => {
    const requestId = await journalByHand(stores, sale, "anna");
    expect(await check(HOUR)).toMatchObject({ findings: [], uncompared: "moving" });
    await stores.sql(`UPDATE requests SET "journaledAt" = now() - interval '2 hours' WHERE "saleId" = $1`, [sale.id]);
    expect(found(await check(HOUR))).toEqual({
      undecided: {
        invariant: "T",
        count: 1,
        shown: [{ id: requestId, expected: "decided", actual: expect.stringMatching(/^waiting for 72\d\d s$/) }],
      },
    });
    expect(kinds(await check())).toEqual(["undecided"]);
  });

  it("by a request that stands in Redis's line and was never made durable", async () => {
    const { requestId } = await acceptOnly(sluice, sale, "anna");
    expect(await check(HOUR)).toMatchObject({ findings: [], uncompared: "moving" });
    expect(found(await check()).in_line).toMatchObject({ invariant: "T", count: 1, shown: [{ id: requestId }] });
  });
});

it("shows twenty offenders, and how many there are", async () => {
  await queueMany(sluice, sale, 25);
  const result = found(await check());
  expect(result.undecided?.count).toBe(25);
  expect(result.undecided?.shown).toHaveLength(20);
  expect(result.in_line?.count).toBe(25);
  expect(result.in_line?.shown).toHaveLength(20);
});

it("a sale that isn't there is not found", async () => {
  await expect(checkSale(sluice, "nowhere", 0)).rejects.toMatchObject({ code: "NOT_FOUND" });
});

it("all that is read of the database is of one moment, and nothing can be written by mistake", async () => {
  const count = async (tx: Tx) => (await countUnfinished(tx, sale.id))?.undecided;
  const seen = await inSnapshot(sluice.reads, async (tx) => {
    const before = await count(tx);
    await journalByHand(stores, sale, "anna");
    return [before, await count(tx)];
  });
  expect(seen).toEqual([0, 0]);
  expect(await inSnapshot(sluice.reads, count)).toBe(1);
  await expect(
    inSnapshot(sluice.reads, (tx) => tx.$executeRaw`UPDATE sales SET title = 'x' WHERE id = ${sale.id}`),
  ).rejects.toThrow(/read-only/);
});
