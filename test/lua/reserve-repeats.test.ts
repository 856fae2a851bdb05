import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { MINUTE } from "../../src/domain/time.js";
import { callAdvance, toStage } from "../../src/redis/advance.js";
import { RedisUnavailableError } from "../../src/redis/errors.js";
import type { LoadRequest } from "../../src/redis/load.js";
import type { ReserveCall, ReserveReply } from "../../src/redis/reserve.js";
import { startTcpProxy } from "../support/tcp-proxy.js";
import { waitFor } from "../support/wait.js";
import {
  accepted,
  type Bench,
  connect,
  loadAgain,
  loadRequest,
  openSale,
  requestId,
  reserve,
  startBench,
  stockOf,
  tally,
} from "./support.js";

let bench: Bench;
beforeAll(async () => {
  bench = await startBench();
});
beforeEach(() => bench.clear());

it("a lost reply never takes a second unit", async () => {
  const sale = await openSale(bench);
  const proxy = await startTcpProxy(bench.redis.url);
  const link = await connect(proxy.url(bench.redis.url));
  // The server has the script before the reply to it can get lost.
  await accepted(link, sale, 1);

  proxy.swallowReplies();
  const lost = expect(reserve(link, sale, 2)).rejects.toThrow(RedisUnavailableError);
  await waitFor(() => proxy.swallowedBytes > 0, { what: "the reply to be lost" });
  proxy.heal();
  await lost;
  expect(await stockOf(bench, sale)).toBe("8");

  await link.whenUsable(10_000);
  const repeat = await bench.untouchedBy(() => reserve(link, sale, 2));
  expect(repeat).toMatchObject({ kind: "known", stage: "PENDING", ahead: 1, seq: 1_000_003 });
  expect(await stockOf(bench, sale)).toBe("8");
});

describe("a request that is sent again", () => {
  it("gets what it was answered first, by its own epoch and seq", async () => {
    const sale = await openSale(bench, { epoch: 3 });
    await accepted(bench.link, sale, 1);
    const { epoch, seq, ahead, at } = await accepted(bench.link, sale, 2);
    await accepted(bench.link, sale, 3);
    const repeat = await bench.untouchedBy(() => reserve(bench.link, sale, 2));
    expect(repeat).toEqual({ kind: "known", epoch, seq, ahead, at, stage: "PENDING", reason: null });
    expect({ epoch, ahead }).toEqual({ epoch: 3, ahead: 1 });
  });

  it.each<[expected: Partial<ReserveReply>, LoadRequest]>([
    [{ stage: "QUEUED", reason: null, ahead: 1 }, loadRequest(1)],
    [{ stage: "QUEUED", reason: null, ahead: null }, loadRequest(1, { stands: "parked" })],
    [{ stage: "ORDERED", reason: null, ahead: null }, loadRequest(1, { stage: "ORDERED", stands: "valid_order" })],
    [
      { stage: "SOLD_OUT", reason: "STOCK_GONE", ahead: null },
      loadRequest(1, { stage: "SOLD_OUT", reason: "STOCK_GONE", stands: "ended" }),
    ],
    [
      { stage: "EXPIRED", reason: "PAYMENT_EXPIRED", ahead: null },
      loadRequest(1, { stage: "EXPIRED", reason: "PAYMENT_EXPIRED", stands: "ended" }),
    ],
  ])("gets what has become of it: %o", async (expected, request) => {
    const requests = [request, loadRequest(0)];
    const sale = await openSale(bench, { epoch: 2, requests });
    const repeat = await bench.untouchedBy(() => reserve(bench.link, sale, 1));
    expect(repeat).toEqual({ kind: "known", epoch: 2, seq: 1, at: request.acceptedAt, ...expected });
  });

  it("hears of each step forward", async () => {
    const sale = await openSale(bench);
    await accepted(bench.link, sale, 1);
    for (const stage of ["QUEUED", "ORDERED", "PAID", "REFUND_PENDING", "REFUNDED"] as const) {
      await callAdvance(bench.link, sale.id, [toStage(requestId(1), stage)]);
      expect(await reserve(bench.link, sale, 1)).toMatchObject({ kind: "known", stage });
    }
  });

  it.each<[why: string, fields: Record<string, string>, changes?: Partial<ReserveCall>]>([
    ["closed", { state: "CLOSED" }],
    ["over", { closesAt: String(Date.now() - MINUTE) }],
    ["paused", { state: "PAUSED" }],
    ["full of waiting requests", { backlogLimit: "1" }],
    ["limited to less", { maxPerBuyer: "0" }],
    ["open, while nothing can be made durable", {}, { accept: false }],
    ["open, after its deadline", {}, { notAfterMs: Date.now() - MINUTE }],
  ])("is answered also when the sale is %s", async (_, fields, changes) => {
    const sale = await openSale(bench, { stock: { shirt: 1 } });
    await accepted(bench.link, sale, 1);
    await bench.client.hset(sale.keys.sale, { state: "OPEN", ...fields });
    const repeat = await bench.untouchedBy(() => reserve(bench.link, sale, 1, changes));
    expect(repeat).toMatchObject({ kind: "known", stage: "PENDING", ahead: 0 });
  });

  it.each<[what: string, changes: Partial<ReserveCall>]>([
    ["buyer", { buyerId: "buyer-2" }],
    ["item", { itemId: "mug" }],
    ["quantity", { quantity: 2 }],
  ])("with another %s is a conflict, and changes nothing", async (_, changes) => {
    const sale = await openSale(bench, { stock: { shirt: 10, mug: 10 } });
    await accepted(bench.link, sale, 1);
    expect(await bench.untouchedBy(() => reserve(bench.link, sale, 1, changes))).toEqual({ kind: "conflict" });
  });

  it("is another request in another sale", async () => {
    const [one, other] = [await openSale(bench), await openSale(bench)];
    await accepted(bench.link, one, 1);
    await accepted(bench.link, other, 1);
  });

  it("after it was refused is decided anew", async () => {
    const sale = await openSale(bench, { state: "PAUSED" });
    expect(await reserve(bench.link, sale, 1)).toEqual({ kind: "paused" });
    await bench.client.hset(sale.keys.sale, "state", "OPEN");
    await accepted(bench.link, sale, 1);
  });

  it("counts as new where only an older epoch knew it, and keeps nothing of what it was", async () => {
    const failed = loadRequest(1, { stage: "FAILED", reason: "PROCESSING_FAILED", stands: "ended" });
    const sale = await openSale(bench, { requests: [failed], stock: { shirt: 10, mug: 10 } });
    await loadAgain(bench.link, sale, { epoch: 2 });

    const { at } = await accepted(bench.link, sale, 1, { buyerId: "buyer-2", itemId: "mug", quantity: 2 });
    expect(await bench.client.hgetall(sale.keys.request(requestId(1)))).toEqual({
      buyer: "buyer-2",
      item: "mug",
      quantity: "2",
      stage: "PENDING",
      rank: "10",
      at: String(at.getTime()),
      epoch: "2",
      seq: "2000002",
    });
  });
});

describe("a stampede", () => {
  const crowd = Array.from({ length: 200 }, (_, buyer) => buyer);

  it("of 200 buyers for the last unit leaves it to one", async () => {
    const sale = await openSale(bench, { stock: { shirt: 1 } });
    const links = [bench.link, ...(await Promise.all([1, 2, 3].map(() => connect(bench.redis.url))))];
    const replies = await Promise.all(crowd.map((buyer) => reserve(links[buyer % 4] ?? bench.link, sale, buyer)));
    expect(tally(replies)).toEqual({ accepted: 1, sold_out: 199 });
    expect(await stockOf(bench, sale)).toBe("0");
    expect(await bench.client.zcard(sale.keys.pending)).toBe(1 + 1);
    expect(await bench.client.hlen(sale.keys.holders)).toBe(2);
  });

  it("of one buyer, a hundred times the same request, takes one unit", async () => {
    const sale = await openSale(bench);
    const replies = await Promise.all(crowd.slice(100).map(() => reserve(bench.link, sale, 1)));
    expect(tally(replies)).toEqual({ accepted: 1, known: 99 });
    expect(await stockOf(bench, sale)).toBe("9");
  });

  it("of one buyer, a hundred requests, takes one unit and tells the others of it", async () => {
    const sale = await openSale(bench);
    const call = { buyerId: "buyer" };
    const replies = await Promise.all(crowd.slice(100).map((number) => reserve(bench.link, sale, number, call)));
    expect(tally(replies)).toEqual({ accepted: 1, held: 99 });
    const [winner] = await bench.client.zrange(sale.keys.pending, 1, -1);
    expect(replies).toContainEqual({ kind: "held", requestId: winner });
    expect(await stockOf(bench, sale)).toBe("9");
    expect(await bench.client.hget(sale.keys.holders, "buyer")).toBe(winner);
  });
});
