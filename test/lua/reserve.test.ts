import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { DAY, HOUR, MINUTE, SECOND } from "../../src/domain/time.js";
import { beginLoad } from "../../src/redis/load.js";
import type { ReserveCall, ReserveReply } from "../../src/redis/reserve.js";
import { callSetState } from "../../src/redis/set-state.js";
import {
  accepted,
  type Bench,
  loadRequest,
  newSale,
  openSale,
  requestId,
  reserve,
  type SaleOptions,
  startBench,
  stockOf,
  type TestSale,
} from "./support.js";

let bench: Bench;
beforeAll(async () => {
  bench = await startBench();
});
beforeEach(() => bench.clear());

const HOUR_AGO = () => new Date(Date.now() - HOUR);
const IN_AN_HOUR = new Date(Date.now() + HOUR);

describe("an accepted request", () => {
  it("is written whole: stock, holder, place in the queue, contents, and nothing else", async () => {
    const sale = await openSale(bench, { epoch: 3, stock: { shirt: 10, mug: 7 } });
    const before = await bench.client.hgetall(sale.keys.sale);
    const reply = await accepted(bench.link, sale, 1, { quantity: 3 });

    expect(reply).toEqual({ kind: "accepted", epoch: 3, seq: 3_000_002, ahead: 0, generation: 1, at: reply.at });
    expect(await bench.client.hgetall(sale.keys.sale)).toEqual({ ...before, seq: "3000002" });
    expect(await bench.client.hgetall(sale.keys.stock)).toEqual({ shirt: "7", mug: "7" });
    expect(await bench.client.hgetall(sale.keys.holders)).toEqual({ ".": "", "buyer-1": requestId(1) });
    expect(await bench.client.zrange(sale.keys.pending, 1, -1, "WITHSCORES")).toEqual([requestId(1), "3000002"]);
    expect(await bench.client.hgetall(sale.keys.request(requestId(1)))).toEqual({
      buyer: "buyer-1",
      item: "shirt",
      quantity: "3",
      stage: "PENDING",
      rank: "10",
      at: String(reply.at.getTime()),
      epoch: "3",
      seq: "3000002",
    });
    expect(Object.keys(await bench.snapshot()).sort()).toEqual(
      ["holders", "pending", `r:${requestId(1)}`, "sale", "stock"].map((name) => `sluice:{${sale.id}}:${name}`),
    );
  });

  it("is told how many were accepted before it and wait", async () => {
    const sale = await openSale(bench);
    for (const ahead of [0, 1, 2]) {
      expect(await accepted(bench.link, sale, ahead)).toMatchObject({ ahead, seq: 1_000_002 + ahead });
    }
  });

  it("is told the time of the server, which it is dated by", async () => {
    const sale = await openSale(bench);
    const [seconds] = await bench.client.time();
    const { at } = await accepted(bench.link, sale, 1);
    expect(Math.abs(at.getTime() - Number(seconds) * SECOND)).toBeLessThan(MINUTE);
  });

  it("is forgotten a week after the sale closes", async () => {
    const sale = await openSale(bench);
    await accepted(bench.link, sale, 1);
    for (const [key, { expiresAt }] of Object.entries(await bench.snapshot())) {
      expect(expiresAt, key).toBe(sale.header.closesAt.getTime() + 7 * DAY);
    }
  });

  it("keeps every digit of numbers that 32 bits, or fourteen places, don't hold", async () => {
    const stock = { shirt: 2 ** 52 };
    const sale = await openSale(bench, { stock, maxPerBuyer: 4_000_000_000, backlogLimit: 4_000_000_000 });
    await bench.client.hset(sale.keys.sale, { seq: 2 ** 52 - 2, "g:shirt": 3_000_000_001 });

    const first = await accepted(bench.link, sale, 1, { quantity: 3_000_000_001 });
    expect(first).toMatchObject({ seq: 2 ** 52 - 1, generation: 3_000_000_001 });
    expect(await accepted(bench.link, sale, 2)).toMatchObject({ seq: 2 ** 52, ahead: 1 });
    expect(await reserve(bench.link, sale, 2)).toMatchObject({ kind: "known", seq: 2 ** 52, ahead: 1 });
    expect(await stockOf(bench, sale)).toBe(String(2 ** 52 - 3_000_000_002));
    expect(await bench.client.zscore(sale.keys.pending, requestId(2))).toBe(String(2 ** 52));
    expect(await bench.client.hget(sale.keys.sale, "seq")).toBe(String(2 ** 52));
  });

  it("may take the last unit, and exactly that", async () => {
    const sale = await openSale(bench, { stock: { shirt: 2 } });
    await accepted(bench.link, sale, 1, { quantity: 2 });
    expect(await reserve(bench.link, sale, 2)).toEqual({ kind: "sold_out", epoch: 1, generation: 1 });
    expect(await stockOf(bench, sale)).toBe("0");
  });
});

type Refusal = {
  why: string;
  options?: SaleOptions;
  arrange?: (sale: TestSale) => Promise<unknown>;
  call?: Partial<ReserveCall>;
  expected: ReserveReply;
};

const HELD_BY_ANOTHER = [loadRequest(7, { buyerId: "buyer-1", stage: "ORDERED", stands: "valid_order" })];

describe("a refusal changes not one key, and publishes nothing", () => {
  it.each<Refusal>([
    {
      why: "the item is none of the sale's",
      call: { itemId: "hat" },
      expected: { kind: "unknown_item" },
    },
    {
      why: "the sale has not started",
      options: { opensAt: IN_AN_HOUR, closesAt: new Date(IN_AN_HOUR.getTime() + HOUR) },
      expected: { kind: "not_started", opensAt: IN_AN_HOUR, nowMs: expect.any(Number) },
    },
    { why: "its window has passed", options: { closesAt: HOUR_AGO() }, expected: { kind: "ended" } },
    { why: "it was closed", options: { state: "CLOSED" }, expected: { kind: "ended" } },
    { why: "it is paused", options: { state: "PAUSED" }, expected: { kind: "paused" } },
    {
      why: "the buyer has a reservation",
      options: { requests: HELD_BY_ANOTHER },
      expected: { kind: "held", requestId: requestId(7) },
    },
    {
      why: "it is more than a buyer may have",
      call: { quantity: 5 },
      expected: { kind: "limit_exceeded", maxPerBuyer: 4 },
    },
    {
      why: "nothing is left",
      options: { epoch: 2, stock: { shirt: 0 } },
      expected: { kind: "sold_out", epoch: 2, generation: 1 },
    },
    {
      why: "less is left than was asked for",
      options: { stock: { shirt: 2 } },
      call: { quantity: 3 },
      expected: { kind: "insufficient", remaining: 2 },
    },
    {
      why: "too many wait already",
      options: { backlogLimit: 2, requests: [loadRequest(8), loadRequest(9)] },
      expected: { kind: "busy" },
    },
    { why: "it could not be made durable", call: { accept: false }, expected: { kind: "refused" } },
    { why: "its caller has given up", call: { notAfterMs: Date.now() - MINUTE }, expected: { kind: "too_late" } },
  ])("$why: $expected.kind", async ({ options, call, expected }) => {
    const sale = await openSale(bench, options);
    expect(await bench.untouchedBy(() => reserve(bench.link, sale, 1, call))).toEqual(expected);
  });

  it.each<Refusal>([
    { why: "there is nothing", expected: { kind: "not_loaded" } },
    {
      why: "there is only a state",
      arrange: ({ header }) => callSetState(bench.link, { ...header, id: header.saleId }),
      expected: { kind: "not_loaded" },
    },
    {
      why: "it is being loaded",
      arrange: ({ header }) => beginLoad(bench.link, header),
      expected: { kind: "not_loaded" },
    },
    {
      why: "another server was loaded",
      arrange: async (sale) => {
        await beginLoad(bench.link, sale.header);
        await bench.client.hset(sale.keys.sale, { phase: "READY", runId: "f".repeat(40) });
      },
      expected: { kind: "not_loaded" },
    },
  ])("$why: $expected.kind", async ({ arrange, expected }) => {
    const sale = newSale();
    await arrange?.(sale);
    expect(await bench.untouchedBy(() => reserve(bench.link, sale, 1))).toEqual(expected);
  });
});

it("of several reasons to refuse, the one that comes first in the order of the checks is told", async () => {
  const sale = await openSale(bench);
  const { client } = bench;
  const { keys } = sale;
  const call: Partial<ReserveCall> = { quantity: 3 };
  const set = (fields: Record<string, string | number>) => client.hset(keys.sale, fields);

  // All that stands in the way of a request, the first to be seen first; each with what takes it away.
  const obstacles: [kind: ReserveReply["kind"], takeAway: () => unknown][] = [
    ["not_loaded", () => set({ phase: "READY" })],
    ["conflict", () => client.del(keys.request(requestId(1)))],
    ["ended", () => set({ closesAt: IN_AN_HOUR.getTime() + HOUR })],
    ["not_started", () => set({ opensAt: HOUR_AGO().getTime() })],
    ["paused", () => set({ state: "OPEN" })],
    ["damaged", () => client.hset(keys.holders, ".", "")],
    ["held", () => client.hdel(keys.holders, "buyer-1")],
    ["limit_exceeded", () => set({ maxPerBuyer: 4 })],
    ["unknown_item", () => set({ "g:shirt": 1 })],
    ["damaged", () => client.hset(keys.stock, "shirt", 0)],
    ["sold_out", () => client.hset(keys.stock, "shirt", 2)],
    ["insufficient", () => client.hset(keys.stock, "shirt", 3)],
    ["busy", () => client.zrem(keys.pending, "other")],
    ["refused", () => Object.assign(call, { accept: true })],
    ["too_late", () => Object.assign(call, { notAfterMs: bench.link.clock.now() + MINUTE })],
  ];
  await client.hset(keys.request(requestId(1)), { epoch: 1, buyer: "buyer-1", item: "mug", quantity: 1 });
  await set({ phase: "LOADING", opensAt: IN_AN_HOUR.getTime(), closesAt: HOUR_AGO().getTime(), state: "PAUSED" });
  await set({ maxPerBuyer: 2, backlogLimit: 1 });
  await client.hdel(keys.sale, "g:shirt");
  await client.hdel(keys.stock, "shirt");
  await client.hdel(keys.holders, ".");
  await client.hset(keys.holders, "buyer-1", requestId(7));
  await client.zadd(keys.pending, 1, "other");
  Object.assign(call, { accept: false, notAfterMs: bench.link.clock.now() - MINUTE });

  for (const [kind, takeAway] of obstacles) {
    expect(await bench.untouchedBy(() => reserve(bench.link, sale, 1, call))).toMatchObject({ kind });
    await takeAway();
  }
  expect(await reserve(bench.link, sale, 1, call)).toMatchObject({ kind: "accepted", ahead: 0 });
});
