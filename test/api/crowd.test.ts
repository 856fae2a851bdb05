import { randomUUID } from "node:crypto";
import { beforeAll, describe, expect, it } from "vitest";
import { type Crowd, gatherCrowd, tally, unitsPromised } from "../support/crowd.js";
import { settleAndCheck } from "../support/invariants.js";
import {
  type Answer,
  type Api,
  prepareSluice,
  type ReserveAnswer,
  reserve,
  type TestSale,
  type TestSluice,
  waitUntilDecided,
} from "../support/sluice.js";
import { query } from "../support/sql.js";
import { atEndOfFile } from "../support/test-file.js";

let sluice: TestSluice;
let api: Api;
let crowd: Crowd;

/** What is counted here must not depend on how busy the machine is: nothing is given up for being late. */
const UNHURRIED = JSON.stringify({
  deadlines: { requestMs: 50_000, journalMs: 40_000, redisCommandMs: 30_000 },
  sql: { statementMs: 30_000, lockMs: 20_000 },
});

beforeAll(async () => {
  sluice = await prepareSluice({ env: { SLUICE_TUNING: UNHURRIED } });
  [api] = await Promise.all([sluice.startApi(), sluice.startWorker()]);
  crowd = gatherCrowd(api, 200);
  atEndOfFile(() => crowd.close());
});

describe("a crowd", () => {
  it("of 2,000 buyers gets 100 units exactly, each the one that was promised, and a clear answer everybody else", async () => {
    const sale = await sluice.createSale(api, { initial: [100], maxPerBuyer: 1 });
    const tokens = await tokensOf(2_000);

    const answers = await Promise.all(tokens.map((token) => crowd.reserve(token, wish(sale))));

    expect(tally(answers)).toEqual({ QUEUED: 100, SOLD_OUT: 1_900 });
    expect(unitsPromised(answers.map(asPromise))).toBe(100);
    await settled(sale);
    const promised = answers.map(requestIdOf).filter((requestId) => requestId !== undefined);
    expect(await orderedRequests(sale)).toEqual(promised.sort());
  });

  it("asking for two units each leaves an odd last one, and never half of a wish", async () => {
    const sale = await sluice.createSale(api, { initial: [7], maxPerBuyer: 2 });
    const tokens = await tokensOf(30);

    const answers = await Promise.all(tokens.map((token) => crowd.reserve(token, { ...wish(sale), quantity: 2 })));

    expect(tally(answers)).toEqual({ QUEUED: 3, INSUFFICIENT: 27 });
    const one = await crowd.reserve(await buyer(), wish(sale));
    const none = await crowd.reserve(await buyer(), wish(sale));
    expect(tally([one, none])).toEqual({ QUEUED: 1, SOLD_OUT: 1 });
    await settled(sale);
    expect(await orderedRequests(sale)).toHaveLength(4);
  });

  it("for one item leaves the stock of its neighbour alone", async () => {
    const sale = await sluice.createSale(api, { initial: [20, 5], maxPerBuyer: 1 });
    const [hot, calm] = sale.items;
    const tokens = await tokensOf(200);

    const answers = await Promise.all(tokens.map((token) => crowd.reserve(token, wish(sale, hot?.id))));

    expect(tally(answers)).toEqual({ QUEUED: 20, SOLD_OUT: 180 });
    expect(await remainingOf(sale)).toEqual({ [hot?.id ?? ""]: 0, [calm?.id ?? ""]: 5 });
    const calmAnswers = await Promise.all(
      tokens.slice(0, 5).map(async () => crowd.reserve(await buyer(), wish(sale, calm?.id))),
    );
    expect(tally(calmAnswers)).toEqual({ QUEUED: 5 });
    await settled(sale);
    expect(await orderedRequests(sale)).toHaveLength(25);
  });

  it("at two sales at once gets each sale's units, none of the other's", async () => {
    const [first, second] = await Promise.all([
      sluice.createSale(api, { initial: [10], maxPerBuyer: 1 }),
      sluice.createSale(api, { initial: [30], maxPerBuyer: 1 }),
    ]);
    const tokens = await tokensOf(100);

    const [ofFirst, ofSecond] = await Promise.all(
      [first, second].map((sale) => Promise.all(tokens.map((token) => crowd.reserve(token, wish(sale))))),
    );

    expect(tally(ofFirst ?? [])).toEqual({ QUEUED: 10, SOLD_OUT: 90 });
    expect(tally(ofSecond ?? [])).toEqual({ QUEUED: 30, SOLD_OUT: 70 });
    await Promise.all([settled(first), settled(second)]);
  });
});

describe("one buyer", () => {
  it("who sends one request 50 times at once has one reservation and one order, and hears of no other", async () => {
    const sale = await sluice.createSale(api, { initial: [100], maxPerBuyer: 1 });
    const token = await buyer();
    const same = wish(sale);

    const answers = await Promise.all(Array.from({ length: 50 }, () => crowd.reserve(token, same)));

    expect(answers.map(({ errors }) => errors).filter(Boolean)).toEqual([]);
    expect(new Set(answers.map(requestIdOf))).toEqual(new Set([same.requestId]));
    for (const { data } of answers) expect(["QUEUED", "DECIDED"]).toContain(data?.reserve.status);
    await settled(sale);
    expect(await orderedRequests(sale)).toEqual([same.requestId]);
    expect(await remainingOf(sale)).toEqual({ [same.itemId]: 99 });
  });

  it("who sends 50 different requests at once has one of them, and is told which by all others", async () => {
    const sale = await sluice.createSale(api, { initial: [100], maxPerBuyer: 1 });
    const token = await buyer();

    const answers = await Promise.all(Array.from({ length: 50 }, () => crowd.reserve(token, wish(sale))));

    expect(tally(answers)).toEqual({ QUEUED: 1, ALREADY_RESERVED: 49 });
    const [winner] = [...new Set(answers.map(requestIdOf))];
    expect(answers.map(requestIdOf)).toEqual(answers.map(() => winner));
    await settled(sale);
    expect(await orderedRequests(sale)).toEqual([winner]);
    expect(await remainingOf(sale)).toEqual({ [sale.items[0]?.id ?? ""]: 99 });
  });

  it("who uses one requestId in two sales has an order in each", async () => {
    const sales = await Promise.all([sluice.createSale(api), sluice.createSale(api)]);
    const token = await buyer();
    const requestId = randomUUID();

    const answers = await Promise.all(sales.map((sale) => reserve(api, token, sale, { requestId })));

    expect(tally(answers)).toEqual({ QUEUED: 2 });
    for (const sale of sales) {
      expect(await waitUntilDecided(api, token, sale.id, requestId)).toMatchObject({ status: "SUCCESS" });
      await settled(sale);
      expect(await orderedRequests(sale)).toEqual([requestId]);
    }
  });
});

let buyers = 0;

function buyer(): Promise<string> {
  buyers += 1;
  return sluice.token("buyer", `buyer-${buyers}`);
}

function tokensOf(count: number): Promise<string[]> {
  return Promise.all(Array.from({ length: count }, buyer));
}

function wish(sale: TestSale, itemId = sale.items[0]?.id) {
  return { saleId: sale.id, itemId: itemId ?? "", requestId: randomUUID() };
}

function requestIdOf({ data }: Answer<ReserveAnswer>): string | undefined {
  return data?.reserve.reservation?.requestId;
}

function asPromise({ data }: Answer<ReserveAnswer>) {
  return { status: data?.reserve.status, quantity: data?.reserve.reservation?.quantity ?? 0 };
}

function settled(sale: TestSale): Promise<void> {
  return settleAndCheck(sluice.databaseUrl, sluice.redis.url, sale.id);
}

async function orderedRequests(sale: TestSale): Promise<string[]> {
  const rows = await query<{ requestId: string }>(
    sluice.databaseUrl,
    `SELECT "requestId" FROM orders WHERE "saleId" = $1 ORDER BY "requestId"`,
    [sale.id],
  );
  return rows.map(({ requestId }) => requestId);
}

async function remainingOf(sale: TestSale): Promise<Record<string, number>> {
  const { data } = await api.call<{ sale: { items: { id: string; remaining: number }[] } }>(
    null,
    "query ($id: ID!) { sale(id: $id) { items { id remaining } } }",
    { id: sale.id },
  );
  return Object.fromEntries((data?.sale.items ?? []).map(({ id, remaining }) => [id, remaining]));
}
