import { randomUUID } from "node:crypto";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { orderIdOf } from "../../src/domain/ids.js";
import { bury } from "../../src/operations/bury.js";
import { compensateDeadLetter } from "../../src/operations/compensate.js";
import { pay } from "../../src/operations/pay.js";
import { completeRefund, refundOrder } from "../../src/operations/refund.js";
import { replayDeadLetter } from "../../src/operations/replay.js";
import { type RequestTrace, traceRequest } from "../../src/operations/trace-request.js";
import type { Resources } from "../../src/resources.js";
import { snapshotOf } from "../support/snapshot.js";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy.js";
import {
  acceptOnly,
  openProcess,
  openSale,
  order,
  queueOne,
  type Stores,
  startStores,
  type TestSale,
} from "./support.js";

let stores: Stores;
let sluice: Resources;
let sale: TestSale;

beforeAll(async () => {
  stores = await startStores();
  sluice = await openProcess(stores);
});

beforeEach(async () => {
  sale = await openSale(sluice, { initial: 10 });
});

async function trace(requestId: string, by = sluice): Promise<RequestTrace> {
  const found = await traceRequest(by, { saleId: sale.id, requestId });
  if (!found) throw new Error("no store knows it");
  return found;
}

/** Its entries in short, those with a time first. */
const told = ({ entries }: RequestTrace) => entries.map(({ source, what }) => `${source} ${what}`);

describe("a trace", () => {
  it("of a request in line tells where it stands in each store", async () => {
    await queueOne(sluice, sale, "anna");
    const requestId = await queueOne(sluice, sale, "bert", { quantity: 2 });
    const found = await trace(requestId);
    expect(found).toMatchObject({ saleId: sale.id, requestId, buyerId: "bert", stage: "QUEUED", missing: [] });
    expect(found.summary).toBe("QUEUED: waits to be decided, 1 ahead of it. Nothing is missing.");
    expect(told(found)).toEqual([
      "REDIS accepted: its stock was taken",
      "TABLE journaled: durable from here on",
      "QUEUE its job was added",
      "TABLE undecided",
      "REDIS QUEUED, in line, 1 ahead",
      "QUEUE its job is waiting",
    ]);
    expect(found.entries.map(({ at }) => at !== null)).toEqual([true, true, true, false, false, false]);
    expect(found.entries[0]?.details).toMatchObject({ itemId: sale.itemId, quantity: 2, epoch: 1 });
    expect(found.entries[4]?.details).toMatchObject({
      rank: 20,
      seq: expect.any(Number),
      holdsBuyer: true,
      salePhase: "READY",
    });
  });

  it("of one that was ordered, paid and refunded tells all of it by time, the money and who did it", async () => {
    const requestId = await order(sluice, sale, "anna", { quantity: 2 });
    const orderId = orderIdOf(sale.id, requestId);
    await pay(sluice, { orderId, paymentRef: "pay_1", amountMinor: 5_000 });
    await pay(sluice, { orderId, paymentRef: "pay_2", amountMinor: 1 });
    await refundOrder(sluice, { orderId, reason: "a scratch", actor: "olga" });
    await completeRefund(sluice, { orderId, refundRef: "refund_1", restock: true, actor: "olga" });
    const found = await trace(requestId);
    expect(found).toMatchObject({ stage: "REFUNDED", summary: "REFUNDED: REFUNDED. Nothing is missing.", missing: [] });
    const lines = told(found);
    for (const line of [
      "TABLE decided ORDERED",
      "ORDER written",
      "ORDER paid",
      "ORDER is REFUNDED since then",
      "PAYMENT reported: PAID",
      "PAYMENT reported: REFUND_DUE",
      "PAYMENT given back",
      "EVENT REFUND_PENDING → REFUNDED, for Redis to hear",
      "EVENT REFUNDED applied in Redis",
      "AUDIT refundOrder by olga",
      "AUDIT completeRefund by olga",
      "REDIS REFUNDED, not in line",
      "QUEUE its job is waiting",
    ]) {
      expect(lines).toContain(line);
    }
    expect(lines.filter((line) => line.startsWith("STOCK"))).toEqual([
      "STOCK LOCK 2",
      "STOCK SELL 2",
      "STOCK REFUND_START 2",
      "STOCK REFUND_DONE 2",
    ]);
    const times = found.entries.flatMap(({ at }) => (at ? [at.getTime()] : []));
    expect(times).toEqual([...times].sort((a, b) => a - b));
    expect(JSON.parse(JSON.stringify(found)).entries).toHaveLength(found.entries.length);
  });

  it("of one that was given up, tried again, given up again and compensated tells of each", async () => {
    const requestId = await queueOne(sluice, sale, "anna");
    const command = { saleId: sale.id, reason: "seen to", actor: "olga" };
    const giveUp = async () => {
      await bury(sluice, sale.id, [{ requestId, stage: "write", lastError: "no such luck", attempts: 5 }]);
      const rows = await stores.sql<{ id: string }>(`SELECT id FROM dead_letters WHERE "requestId" = $1`, [requestId]);
      return Math.max(...rows.map(({ id }) => Number(id)));
    };
    const first = await giveUp();
    const parked = await trace(requestId);
    expect(parked.summary).toBe(
      `QUEUED: given up, and waits for an operator to see to the dead letter ${first}. Nothing is missing.`,
    );
    expect(told(parked)).toContain("REDIS QUEUED, not in line");
    await replayDeadLetter(sluice, { ...command, id: BigInt(first) });
    await compensateDeadLetter(sluice, { ...command, id: BigInt(await giveUp()) });
    const found = await trace(requestId);
    expect(found).toMatchObject({ stage: "FAILED", missing: [] });
    expect(found.summary).toBe("FAILED: PROCESSING_FAILED. Nothing is missing.");
    const linesOf = (source: string) => told(found).filter((line) => line.startsWith(source));
    expect(linesOf("DEAD_LETTER")).toEqual([
      "DEAD_LETTER given up at write",
      "DEAD_LETTER is REPLAYED since then",
      "DEAD_LETTER given up at write",
      "DEAD_LETTER is COMPENSATED since then",
    ]);
    // Either may come first within a millisecond, which one clock rounds and the other cuts.
    expect(linesOf("AUDIT")).toEqual(["AUDIT replayDeadLetter by olga", "AUDIT compensateDeadLetter by olga"]);
  });

  it("looks again before it says that something is missing: what is under way is between two stores", async () => {
    const { epoch, ...row } = await acceptOnly(sluice, sale, "anna");
    let looks = 0;
    const reads = new Proxy(sluice.reads, {
      get: (target, property) =>
        property === "$transaction"
          ? async (...args: Parameters<Resources["reads"]["$transaction"]>) => {
              const seen = await target.$transaction(...args);
              looks += 1;
              // Between the first look at the database and the one at Redis.
              if (looks === 1) await sluice.journal.add(sale.id, { ...row, epoch });
              await sluice.journal.drained();
              return seen;
            }
          : Reflect.get(target, property),
    });
    expect(await trace(row.requestId, { ...sluice, reads })).toMatchObject({ stage: "QUEUED", missing: [] });
    expect(looks).toBe(2);
  });

  it("of what no store knows is null, and writes nothing anywhere", async () => {
    await queueOne(sluice, sale, "anna");
    const before = await snapshotOf(stores.databaseUrl, stores.redis.url);
    for (const saleId of [sale.id, "elsewhere", "a b", "", "x".repeat(10_000)]) {
      expect(await traceRequest(sluice, { saleId, requestId: randomUUID() })).toBeNull();
    }
    expect(await snapshotOf(stores.databaseUrl, stores.redis.url)).toEqual(before);
  });

  it("leaves nothing behind on the connection that it shares", async () => {
    const requestId = await queueOne(sluice, sale, "anna");
    const { client } = sluice.redis;
    const count = () => client.eventNames().reduce((sum, name) => sum + client.listenerCount(name), 0);
    await trace(requestId);
    const after = count();
    for (let n = 0; n < 5; n += 1) await trace(requestId);
    expect(count()).toBe(after);
  });
});

describe("with a store away", () => {
  let redisProxy: TcpProxy;
  let databaseProxy: TcpProxy;
  let cutOff: Resources;

  beforeAll(async () => {
    [redisProxy, databaseProxy] = await Promise.all([
      startTcpProxy(stores.redis.url),
      startTcpProxy(stores.databaseUrl),
    ]);
    cutOff = await openProcess(stores, {
      redisUrl: redisProxy.url(stores.redis.url),
      databaseUrl: databaseProxy.url(stores.databaseUrl),
      // Long enough for the store that does answer, on a busy machine too.
      tuning: {
        deadlines: { redisCommandMs: 2_000 },
        sql: { statementMs: 2_000, readStatementMs: 2_000, lockMs: 2_000 },
      },
    });
  });

  it("tells what the database knows, and that Redis was not heard", async () => {
    const requestId = await order(sluice, sale, "anna");
    redisProxy.blackhole();
    const found = await trace(requestId, cutOff);
    expect(found).toMatchObject({ buyerId: "anna", stage: "ORDERED" });
    expect(found.missing).toEqual(["Redis does not answer: what it and the queue hold is not known."]);
    expect(found.summary).toMatch(/^ORDERED: to be paid until .* Redis does not answer/);
    expect(told(found)).toContain("STOCK LOCK 1");
    // It may be one that only Redis knows.
    await expect(trace(randomUUID(), cutOff)).rejects.toMatchObject({ name: "RedisUnavailableError" });
    redisProxy.heal();
    await cutOff.redis.whenUsable(20_000);
  });

  it("tells what Redis knows, and that the database was not heard", async () => {
    const requestId = await queueOne(sluice, sale, "anna");
    databaseProxy.blackhole();
    const found = await trace(requestId, cutOff);
    expect(found).toMatchObject({ buyerId: "anna", stage: "QUEUED" });
    expect(found.missing).toEqual(["The database does not answer: what it holds is not known."]);
    expect(told(found)).toContain("QUEUE its job is waiting");
    await expect(trace(randomUUID(), cutOff)).rejects.toThrow();
    databaseProxy.heal();
  });
});
