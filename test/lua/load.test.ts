import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { DAY, HOUR } from "../../src/domain/time.js";
import { callAdvance, toStage } from "../../src/redis/advance.js";
import { beginLoad, finishLoad, LOAD_CHUNK, type LoadHeader, loadChunk } from "../../src/redis/load.js";
import {
  accepted,
  type Bench,
  loadAgain,
  loadRequest,
  newSale,
  openSale,
  replace,
  requestId,
  reserve,
  startBench,
  type TestSale,
} from "./support.js";

let bench: Bench;
beforeAll(async () => {
  bench = await startBench();
});
beforeEach(() => bench.clear());

const begin = (sale: TestSale, header: Partial<LoadHeader> = {}) =>
  beginLoad(bench.link, { ...sale.header, ...header });
const chunk = (sale: TestSale, epoch: number, ...requests: Parameters<typeof loadChunk>[3]) =>
  loadChunk(bench.link, sale.id, epoch, requests);
const finish = (sale: TestSale, epoch: number) => finishLoad(bench.link, sale.id, epoch);
const holders = (sale: TestSale) => bench.client.hgetall(sale.keys.holders);
const queue = (sale: TestSale) => bench.client.zrange(sale.keys.pending, 1, -1);

describe("begin", () => {
  it("brings the sale as the database has it, under LOADING, on this server", async () => {
    const sale = newSale({ epoch: 7, stateVersion: 5, state: "PAUSED", stock: { shirt: 10, mug: 0 } });
    expect(await begin(sale)).toBe("ok");
    expect(await bench.client.hgetall(sale.keys.sale)).toEqual({
      phase: "LOADING",
      runId: bench.link.runId(),
      epoch: "7",
      seq: "7000000",
      state: "PAUSED",
      stateVersion: "5",
      opensAt: String(sale.header.opensAt.getTime()),
      closesAt: String(sale.header.closesAt.getTime()),
      forgetAt: String(sale.header.closesAt.getTime() + 7 * DAY),
      maxPerBuyer: "4",
      backlogLimit: "1000",
      "g:shirt": "1",
      "g:mug": "1",
    });
    expect(await bench.client.hgetall(sale.keys.stock)).toEqual({ shirt: "10", mug: "0" });
    expect(await holders(sale)).toEqual({ ".": "" });
  });

  it("of an epoch that is not newer is superseded, and changes not one key", async () => {
    const sale = await openSale(bench, { epoch: 10 });
    for (const epoch of [10, 9, 2]) {
      const call = () => begin(sale, { epoch, state: "CLOSED", stateVersion: 99 });
      expect(await bench.untouchedBy(call), String(epoch)).toBe("superseded");
    }
    expect(await begin(sale, { epoch: 11 })).toBe("ok");
  });

  it("of a newer epoch takes a load over that is under way", async () => {
    const sale = newSale();
    await begin(sale);
    expect(await begin(sale, { epoch: 2 })).toBe("ok");
    expect(await bench.untouchedBy(() => chunk(sale, 1, loadRequest(1)))).toBe("superseded");
    expect(await bench.untouchedBy(() => finish(sale, 1))).toBe("superseded");
    expect(await finish(sale, 2)).toBe("ok");
  });

  it("clears stock, holders and queue, and tells nobody yet", async () => {
    const sale = await openSale(bench, { stock: { shirt: 10, mug: 3 } });
    await accepted(bench.link, sale, 1);
    await bench.published();
    await begin(sale, { epoch: 2, remaining: new Map([["shirt", 4]]) });
    expect(await bench.client.hgetall(sale.keys.stock)).toEqual({ shirt: "4" });
    expect(await holders(sale)).toEqual({ ".": "" });
    expect(await queue(sale)).toEqual([]);
    expect(await bench.published()).toEqual([]);
  });

  it.each(["string", "list", "zset"])("mends keys that became a %s", async (type) => {
    const sale = await openSale(bench);
    const { request: _, events: __, ...keys } = sale.keys;
    for (const key of [...Object.values(keys), sale.keys.request(requestId(1))]) await replace(bench, key, type);
    await loadAgain(bench.link, sale, { epoch: 2 }, [loadRequest(1)]);
    await accepted(bench.link, sale, 2);
  });

  it("makes the generations of an unflushed sale grow, whatever was in them", async () => {
    const sale = await openSale(bench, { stock: { shirt: 1, mug: 1 } });
    for (const epoch of [2, 3]) {
      await loadAgain(bench.link, sale, { epoch });
      expect(await bench.client.hmget(sale.keys.sale, "g:shirt", "g:mug")).toEqual([String(epoch), String(epoch)]);
    }
    await bench.client.hset(sale.keys.sale, "g:shirt", "x");
    await loadAgain(bench.link, sale, { epoch: 4 });
    expect(await bench.client.hmget(sale.keys.sale, "g:shirt", "g:mug")).toEqual(["1", "4"]);
  });
});

describe("a chunk", () => {
  it("brings requests whole, and leaves nothing of what was there", async () => {
    const sale = newSale({ epoch: 2 });
    await bench.client.hset(sale.keys.request(requestId(1)), { stage: "FAILED", reason: "STOCK_GONE", other: "x" });
    await begin(sale);
    const ended = loadRequest(2, { stage: "EXPIRED", reason: "PAYMENT_EXPIRED", quantity: 3, stands: "ended" });
    expect(await chunk(sale, 2, loadRequest(1), ended)).toBe("ok");

    const common = { item: "shirt", epoch: "2" };
    expect(await bench.client.hgetall(sale.keys.request(requestId(1)))).toEqual({
      ...common,
      ...{ buyer: "buyer-1", quantity: "1", stage: "QUEUED", rank: "20", at: "1700000000001", seq: "1" },
    });
    expect(await bench.client.hgetall(sale.keys.request(requestId(2)))).toEqual({
      ...common,
      ...{ buyer: "buyer-2", quantity: "3", stage: "EXPIRED", rank: "90", at: "1700000000002", seq: "2" },
      reason: "PAYMENT_EXPIRED",
    });
  });

  it("puts the undecided into the queue by seq, whatever order they come in; parked and decided ones not", async () => {
    const sale = newSale();
    await begin(sale);
    await chunk(sale, 1, loadRequest(1, { seq: 30 }), loadRequest(2, { seq: 2 ** 52 }));
    await chunk(sale, 1, loadRequest(3, { seq: 20 }), loadRequest(4, { seq: 10, stands: "parked" }));
    await chunk(sale, 1, loadRequest(5, { seq: 5, stage: "PAID", stands: "valid_order" }));
    await chunk(sale, 1, loadRequest(6, { seq: 6, stage: "FAILED", stands: "ended" }));
    expect(await queue(sale)).toEqual([3, 1, 2].map(requestId));
    expect(await bench.client.zscore(sale.keys.pending, requestId(2))).toBe(String(2 ** 52));
  });

  const buyerId = "buyer";
  const undecided = loadRequest(1, { buyerId });
  const parked = loadRequest(2, { buyerId, stands: "parked" });
  const order = loadRequest(3, { buyerId, stage: "ORDERED", stands: "valid_order" });
  const ended = loadRequest(4, { buyerId, stage: "CANCELLED", stands: "ended" });

  it.each([
    ["a valid order over an undecided request", [undecided, order], 3],
    ["a valid order that came before an undecided request", [order, undecided], 3],
    ["a valid order over a parked request and an ended one", [parked, order, ended], 3],
    ["an undecided request", [undecided, ended], 1],
    ["a parked request", [ended, parked], 2],
    ["nobody, where all has ended", [ended], null],
  ])("makes the holder %s", async (_, requests, holder) => {
    for (const chunks of [[requests], requests.map((request) => [request])]) {
      const sale = newSale();
      await begin(sale);
      for (const part of chunks) expect(await chunk(sale, 1, ...part)).toBe("ok");
      expect(await holders(sale)).toEqual({ ".": "", ...(holder && { buyer: requestId(holder) }) });
    }
  });

  it("takes as many as one call brings", async () => {
    const sale = newSale();
    await begin(sale);
    expect(await chunk(sale, 1, ...Array.from({ length: LOAD_CHUNK }, (_, number) => loadRequest(number)))).toBe("ok");
    expect(await bench.client.zcard(sale.keys.pending)).toBe(LOAD_CHUNK + 1);
  });
});

describe("only the load that began goes on", () => {
  it.each<[why: string, breakIt: (sale: TestSale) => Promise<unknown>, epoch: number]>([
    ["an older epoch", async () => {}, 4],
    ["a newer epoch", async () => {}, 6],
    ["another server", (sale) => bench.client.hset(sale.keys.sale, "runId", "f".repeat(40)), 5],
    ["a load that is done", (sale) => finish(sale, 5), 5],
    ["a Redis that was wiped meanwhile", () => bench.client.flushall(), 5],
  ])("%s: superseded, and not one key changes", async (_, breakIt, epoch) => {
    const sale = newSale({ epoch: 5 });
    await begin(sale);
    await breakIt(sale);
    expect(await bench.untouchedBy(() => chunk(sale, epoch, loadRequest(1)))).toBe("superseded");
    expect(await bench.untouchedBy(() => finish(sale, epoch))).toBe("superseded");
  });

  it("a key of another type is damaged, and stays as it is", async () => {
    const sale = newSale();
    await begin(sale);
    await replace(bench, sale.keys.sale, "string");
    expect(await bench.untouchedBy(() => chunk(sale, 1, loadRequest(1)))).toBe("damaged");
    expect(await bench.untouchedBy(() => finish(sale, 1))).toBe("damaged");
  });
});

describe("finish", () => {
  it("lets buyers in, and not before; everybody is told to read again", async () => {
    const sale = newSale({ epoch: 4 });
    await begin(sale);
    await chunk(sale, 4, loadRequest(1));
    expect(await bench.untouchedBy(() => reserve(bench.link, sale, 2))).toEqual({ kind: "not_loaded" });
    expect(await bench.untouchedBy(() => reserve(bench.link, sale, 1))).toEqual({ kind: "not_loaded" });
    await bench.published();
    expect(await finish(sale, 4)).toBe("ok");
    expect(await bench.published()).toEqual([{ channel: sale.keys.events, message: { kind: "reloaded", epoch: 4 } }]);
    expect(await accepted(bench.link, sale, 2)).toMatchObject({ epoch: 4, seq: 4_000_002, ahead: 1 });
    expect(await reserve(bench.link, sale, 1)).toMatchObject({ kind: "known", stage: "QUEUED", ahead: 0, epoch: 4 });
  });
});

describe("a week after the sale closes", () => {
  const forgotten = async (sale: TestSale, closesAt: Date, names: string[]) => {
    const keys = Object.entries(await bench.snapshot());
    expect(keys.map(([key]) => key.slice(`sluice:{${sale.id}}:`.length))).toEqual(names);
    for (const [key, { expiresAt }] of keys) expect(expiresAt, key).toBe(closesAt.getTime() + 7 * DAY);
  };

  it("everything of it is forgotten", async () => {
    const sale = await openSale(bench, { requests: [loadRequest(1)] });
    const names = ["holders", "pending", `r:${requestId(1)}`, "sale", "stock"];
    await forgotten(sale, sale.header.closesAt, names);
    const closesAt = new Date(sale.header.closesAt.getTime() + HOUR);
    await loadAgain(bench.link, sale, { epoch: 2, closesAt }, [loadRequest(1)]);
    await forgotten(sale, closesAt, names);
  });

  it("the queue too, when it was emptied and filled again", async () => {
    const sale = await openSale(bench, { requests: [loadRequest(1)] });
    await callAdvance(bench.link, sale.id, [toStage(requestId(1), "ORDERED")]);
    expect(await queue(sale)).toEqual([]);
    await accepted(bench.link, sale, 2);
    const names = ["holders", "pending", `r:${requestId(1)}`, `r:${requestId(2)}`, "sale", "stock"];
    await forgotten(sale, sale.header.closesAt, names);
  });
});
