import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { STAGES, type Stage } from "../../src/domain/stages.js";
import { type Advance, callAdvance, toStage } from "../../src/redis/advance.js";
import { beginLoad } from "../../src/redis/load.js";
import {
  accepted,
  type Bench,
  loadAgain,
  loadRequest,
  newSale,
  openSale,
  requestId,
  startBench,
  type TestSale,
} from "./support.js";

let bench: Bench;
beforeAll(async () => {
  bench = await startBench();
});
beforeEach(() => bench.clear());

const STAGE_NAMES = Object.keys(STAGES) as Stage[];
const ENDS_HOLD = STAGE_NAMES.filter((stage) => STAGES[stage].rank === 90);

const advance = (sale: TestSale, ...advances: Advance[]) => callAdvance(bench.link, sale.id, advances);
/** An event of that epoch which gives units back. */
const givesBack = (number: number, units: number, epoch = 1, stage: Stage = "CANCELLED"): Advance => ({
  requestId: requestId(number),
  stage,
  reason: "CANCELLED_BY_BUYER",
  units,
  epoch,
});
const results = (...words: string[]) => ({ kind: "ok", results: words });
const stockOf = (sale: TestSale) => bench.client.hgetall(sale.keys.stock);
const generationOf = (sale: TestSale, item: string) => bench.client.hget(sale.keys.sale, `g:${item}`);
const message = (sale: TestSale, seq: number, ...requests: [number, number][]) => ({
  channel: sale.keys.events,
  message: { kind: "requests", seq, requests: requests.map(([number, rank]) => [requestId(number), rank]) },
});

describe("a stage is only ever followed by one of a higher rank", () => {
  it.each(STAGE_NAMES.flatMap((from) => STAGE_NAMES.map((to) => [from, to] as const)))(
    "%s, then %s",
    async (from, to) => {
      const sale = await openSale(bench, { requests: [loadRequest(1, { stage: from })] });
      const forward = STAGES[to].rank > STAGES[from].rank;
      const call = () => advance(sale, givesBack(1, 2, 1, to));
      if (forward) {
        expect(await call()).toEqual(results("applied"));
        const request = await bench.client.hgetall(sale.keys.request(requestId(1)));
        expect(request).toMatchObject({ stage: to, rank: String(STAGES[to].rank), reason: "CANCELLED_BY_BUYER" });
        expect(await stockOf(sale)).toEqual({ shirt: "12" });
      }
      // Not at all, or not again.
      expect(await bench.untouchedBy(call)).toEqual(results("stale"));
    },
  );
});

describe("a decided request", () => {
  it.each(["ORDERED", "PAID", "REFUND_PENDING"] as const)("%s leaves the queue and keeps its hold", async (stage) => {
    const sale = await openSale(bench);
    await accepted(bench.link, sale, 1);
    await accepted(bench.link, sale, 2);
    expect(await advance(sale, toStage(requestId(1), stage))).toEqual(results("applied"));
    expect(await bench.client.zrange(sale.keys.pending, 1, -1)).toEqual([requestId(2)]);
    expect(await bench.client.hget(sale.keys.holders, "buyer-1")).toBe(requestId(1));
    expect(await stockOf(sale)).toEqual({ shirt: "8" });
  });

  it.each(ENDS_HOLD)("%s leaves the queue and lets its buyer buy again", async (stage) => {
    const sale = await openSale(bench);
    await accepted(bench.link, sale, 1);
    expect(await advance(sale, toStage(requestId(1), stage))).toEqual(results("applied"));
    expect(await bench.client.zrange(sale.keys.pending, 1, -1)).toEqual([]);
    expect(await bench.client.hgetall(sale.keys.holders)).toEqual({ ".": "" });
    // Nothing was given back with it.
    expect(await stockOf(sale)).toEqual({ shirt: "9" });
    await accepted(bench.link, sale, 2, { buyerId: "buyer-1" });
  });

  it.each(ENDS_HOLD)("%s leaves a hold alone that is of another request", async (stage) => {
    const valid = loadRequest(2, { buyerId: "buyer-1", stage: "ORDERED", stands: "valid_order" });
    const sale = await openSale(bench, { requests: [loadRequest(1), valid] });
    expect(await advance(sale, toStage(requestId(1), stage))).toEqual(results("applied"));
    expect(await bench.client.hget(sale.keys.holders, "buyer-1")).toBe(requestId(2));
  });

  it("QUEUED is none: it stays in the queue", async () => {
    const sale = await openSale(bench);
    await accepted(bench.link, sale, 1);
    expect(await advance(sale, toStage(requestId(1), "QUEUED"))).toEqual(results("applied"));
    expect(await bench.client.zrange(sale.keys.pending, 1, -1)).toEqual([requestId(1)]);
    expect(await bench.client.hget(sale.keys.holders, "buyer-1")).toBe(requestId(1));
  });

  it("keeps its contents and the time when it is forgotten", async () => {
    const sale = await openSale(bench);
    await accepted(bench.link, sale, 1, { quantity: 2 });
    const before = await bench.snapshot();
    const key = sale.keys.request(requestId(1));
    const contents = await bench.client.hgetall(key);
    await advance(sale, toStage(requestId(1), "ORDERED"));
    expect(await bench.client.hgetall(key)).toEqual({ ...contents, stage: "ORDERED", rank: "30" });
    expect((await bench.snapshot())[key]?.expiresAt).toBe(before[key]?.expiresAt);
  });
});

describe("units", () => {
  it("go back once, however often it is said, and by whom", async () => {
    const sale = await openSale(bench);
    await accepted(bench.link, sale, 1, { quantity: 3 });
    const replies = await Promise.all(
      Array.from({ length: 20 }, (_, at) => advance(sale, givesBack(1, 3, 1, ENDS_HOLD[at % ENDS_HOLD.length]))),
    );
    const words = replies.map((reply) => (reply.kind === "ok" ? reply.results[0] : reply.kind));
    expect(words).toEqual(["applied", ...Array(19).fill("stale")]);
    expect(await stockOf(sale)).toEqual({ shirt: "10" });
  });

  it("that turn none into some begin a generation, more of them don't", async () => {
    const orders = [1, 2, 3].map((number) => loadRequest(number, { stage: "ORDERED", stands: "valid_order" }));
    const sale = await openSale(bench, { stock: { shirt: 0, mug: 0 }, requests: orders });
    expect(await generationOf(sale, "shirt")).toBe("1");
    await advance(sale, givesBack(1, 1));
    expect(await generationOf(sale, "shirt")).toBe("2");
    await advance(sale, givesBack(2, 2), givesBack(3, 1));
    expect(await generationOf(sale, "shirt")).toBe("2");
    expect(await generationOf(sale, "mug")).toBe("1");
    expect(await stockOf(sale)).toEqual({ shirt: "4", mug: "0" });
  });

  it("of several requests in one call all go back, and begin one generation", async () => {
    const orders = [1, 2, 3].map((number) =>
      loadRequest(number, { stage: "ORDERED", stands: "valid_order", itemId: number === 3 ? "mug" : "shirt" }),
    );
    const sale = await openSale(bench, { stock: { shirt: 0, mug: 5 }, requests: orders });
    const reply = await advance(sale, givesBack(1, 2), givesBack(2, 3), givesBack(3, 4));
    expect(reply).toEqual(results("applied", "applied", "applied"));
    expect(await stockOf(sale)).toEqual({ shirt: "5", mug: "9" });
    expect([await generationOf(sale, "shirt"), await generationOf(sale, "mug")]).toEqual(["2", "1"]);
  });

  it("that turn none into some are told of in the message, by item, and others are not", async () => {
    const orders = [1, 2, 3, 4].map((number) =>
      loadRequest(number, { stage: "ORDERED", stands: "valid_order", itemId: number < 3 ? "shirt" : "mug" }),
    );
    const sale = await openSale(bench, { stock: { shirt: 0, mug: 5 }, requests: orders });
    const restockedBy = async (...advances: Advance[]) => {
      await bench.published();
      await advance(sale, ...advances);
      return (await bench.published()).map(({ message }) => (message as { restocked?: string[] }).restocked);
    };
    expect(await restockedBy(givesBack(1, 1), givesBack(2, 1), givesBack(3, 1))).toEqual([["shirt"]]);
    expect(await restockedBy(givesBack(4, 1))).toEqual([undefined]);
  });

  it("of one request twice in one call go back once", async () => {
    const sale = await openSale(bench, { requests: [loadRequest(1)] });
    const reply = await advance(sale, givesBack(1, 2), givesBack(1, 2), givesBack(1, 2, 1, "FAILED"));
    expect(reply).toEqual(results("applied", "stale", "stale"));
    expect(await stockOf(sale)).toEqual({ shirt: "12" });
  });
});

describe("two steps of one request in one call", () => {
  it("forward are both taken", async () => {
    const sale = await openSale(bench, { requests: [loadRequest(1)] });
    expect(await advance(sale, toStage(requestId(1), "ORDERED"), givesBack(1, 1))).toEqual(
      results("applied", "applied"),
    );
    expect(await bench.client.hget(sale.keys.request(requestId(1)), "stage")).toBe("CANCELLED");
    expect(await stockOf(sale)).toEqual({ shirt: "11" });
    expect(await bench.client.hget(sale.keys.holders, "buyer-1")).toBeNull();
  });

  it("out of order: the late one does nothing", async () => {
    const sale = await openSale(bench, { requests: [loadRequest(1)] });
    expect(await advance(sale, givesBack(1, 1), toStage(requestId(1), "ORDERED"))).toEqual(results("applied", "stale"));
    expect(await bench.client.hget(sale.keys.request(requestId(1)), "stage")).toBe("CANCELLED");
  });
});

describe("the epoch of an event", () => {
  const requests = [loadRequest(1)];

  it("older than the loading: it was absorbed, and changes nothing", async () => {
    const sale = await openSale(bench, { epoch: 2, requests });
    expect(await bench.untouchedBy(() => advance(sale, givesBack(1, 1, 1)))).toEqual(results("absorbed"));
  });

  it("older, but giving nothing back: there was nothing to absorb, so its rank decides", async () => {
    const sale = await openSale(bench, { epoch: 2, requests });
    expect(await advance(sale, { ...toStage(requestId(1), "PAID"), epoch: 1 })).toEqual(results("applied"));
  });

  it("newer than the loading: later", async () => {
    const sale = await openSale(bench, { epoch: 2, requests });
    expect(await bench.untouchedBy(() => advance(sale, givesBack(1, 1, 3)))).toEqual(results("later"));
  });

  it("any, and even one that gives nothing back, while the sale is being loaded: later", async () => {
    const sale = await openSale(bench, { requests });
    await beginLoad(bench.link, { ...sale.header, epoch: 2 });
    const call = () => advance(sale, givesBack(1, 1, 1), givesBack(1, 1, 2), toStage(requestId(1), "ORDERED"));
    expect(await bench.untouchedBy(call)).toEqual(results("later", "later", "later"));
  });

  it("a request that a ready sale does not have, or had in an older epoch, is unknown", async () => {
    const sale = await openSale(bench, { requests });
    await loadAgain(bench.link, sale, { epoch: 2 });
    const call = () => advance(sale, givesBack(1, 1, 2), toStage(requestId(1), "ORDERED"), givesBack(2, 1, 2));
    expect(await bench.untouchedBy(call)).toEqual(results("unknown", "unknown", "unknown"));
  });

  it("of another server's sale, of one that was never loaded, or of none: not loaded", async () => {
    const sale = await openSale(bench, { requests });
    await bench.client.hset(sale.keys.sale, "runId", "f".repeat(40));
    for (const other of [sale, newSale()]) {
      expect(await bench.untouchedBy(() => advance(other, givesBack(1, 1)))).toEqual({ kind: "not_loaded" });
    }
  });
});

describe("what changed is published", () => {
  it("once a call, exactly that, and nothing of what stayed as it was", async () => {
    const requests = [loadRequest(1), loadRequest(2, { stage: "PAID" }), loadRequest(3), loadRequest(4)];
    const sale = await openSale(bench, { epoch: 2, requests });
    await bench.published();
    const reply = await advance(
      sale,
      toStage(requestId(1), "ORDERED"),
      toStage(requestId(2), "ORDERED"),
      givesBack(3, 1, 1),
      givesBack(4, 1, 2),
      toStage(requestId(5), "ORDERED"),
    );
    expect(reply).toEqual(results("applied", "stale", "absorbed", "applied", "unknown"));
    expect(await bench.published()).toEqual([message(sale, 2_000_003, [1, 30], [4, 90])]);
    expect(await bench.client.hget(sale.keys.sale, "seq")).toBe("2000003");
  });

  it("with every digit of a large change number", async () => {
    const sale = await openSale(bench, { requests: [loadRequest(1)] });
    await bench.client.hset(sale.keys.sale, "seq", 2 ** 52 - 1);
    await bench.published();
    await advance(sale, toStage(requestId(1), "ORDERED"));
    expect(await bench.published()).toEqual([message(sale, 2 ** 52, [1, 30])]);
  });

  it("also of more requests than go into one call to Redis", async () => {
    const requests = Array.from({ length: 1_001 }, (_, number) => loadRequest(number));
    const sale = await openSale(bench, { requests });
    await bench.published();
    const reply = await advance(sale, ...requests.map((request) => toStage(request.requestId, "ORDERED")));
    expect(reply).toEqual(results(...requests.map(() => "applied")));
    const sizes = (await bench.published()).map(({ message }) => (message as { requests: [] }).requests.length);
    expect(sizes).toEqual([500, 500, 1]);
    expect(await bench.client.zrange(sale.keys.pending, 1, -1)).toEqual([]);
  });
});
