import { randomUUID } from "node:crypto";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { HOUR } from "../../src/domain/time.js";
import { bury } from "../../src/operations/bury.js";
import { checkSale } from "../../src/operations/check-sale.js";
import { compensateDeadLetter, compensateOld } from "../../src/operations/compensate.js";
import { discardDeadLetter } from "../../src/operations/discard.js";
import { forward } from "../../src/operations/forward.js";
import { loadSale } from "../../src/operations/load.js";
import { relay } from "../../src/operations/relay.js";
import { replayDeadLetter } from "../../src/operations/replay.js";
import { writeOrders } from "../../src/operations/write-orders.js";
import type { Resources } from "../../src/resources.js";
import { startTcpProxy } from "../support/tcp-proxy.js";
import { untilAllIsOld } from "./clocks.js";
import {
  ask,
  epochInDatabase,
  inRedis,
  openProcess,
  openSale,
  queueOne,
  remaining,
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
  sale = await openSale(sluice, { initial: 3 });
});

const inLine = () => stores.client.zrange(`sluice:{${sale.id}}:pending`, 1, -1);
const letters = () =>
  stores.sql<{ id: string; requestId: string; stage: string; status: string; attempts: number }>(
    'SELECT id, "requestId", stage, status, attempts FROM dead_letters WHERE "saleId" = $1 ORDER BY id',
    [sale.id],
  );
const command = async (more: { reason?: string } = {}) => ({
  saleId: sale.id,
  id: BigInt((await letters()).at(-1)?.id ?? 0),
  reason: "seen to",
  actor: "olga",
  ...more,
});

/** What waits for somebody is no breach; everything else must hold. */
const expectUnbroken = async () =>
  expect(await checkSale(sluice, sale.id, HOUR)).toMatchObject({ findings: [], uncompared: null });

/** A buyer whose request was given up. */
async function givenUp(buyerId = "anna"): Promise<string> {
  const requestId = await queueOne(sluice, sale, buyerId, { quantity: 2 });
  await bury(sluice, sale.id, [{ requestId, stage: "write", lastError: "no such luck", attempts: 5 }]);
  return requestId;
}

describe("a request that is given up", () => {
  it("has one dead letter, is out of the line, and keeps its units and its buyer", async () => {
    const other = await queueOne(sluice, sale, "bert");
    const requestId = await givenUp();
    const again = { requestId, stage: "lost" as const, lastError: "again", attempts: 1 };
    await Promise.all([bury(sluice, sale.id, [again]), bury(sluice, sale.id, [again])]);
    expect(await letters()).toMatchObject([{ requestId, stage: "write", status: "OPEN", attempts: 5 }]);
    expect(await inLine()).toEqual([other]);
    expect(await remaining(stores, sale)).toBe(0);
    expect((await ask(sluice, sale, "anna")).kind).toBe("already_reserved");
    await expectUnbroken();
  });

  it("needs none where it was decided meanwhile", async () => {
    const requestId = await queueOne(sluice, sale, "anna");
    await writeOrders(sluice, sale.id, [requestId]);
    await bury(sluice, sale.id, [{ requestId, stage: "stalled", lastError: "late", attempts: 3 }]);
    expect(await letters()).toEqual([]);
  });

  it("stays out of the line over a load", async () => {
    const requestId = await givenUp();
    await loadSale(sluice, sale.id, { reason: "drift", mendsEpoch: await epochInDatabase(stores, sale) });
    expect(await inLine()).toEqual([]);
    expect(await inRedis(stores, sale, requestId)).toMatchObject({ stage: "QUEUED" });
    await expectUnbroken();
  });

  it("leaves the line later, where Redis could not be told", async () => {
    const proxy = await startTcpProxy(stores.redis.url);
    const cutOff = await openProcess(stores, { redisUrl: proxy.url(stores.redis.url), tuning: { repairAfterMs: 1 } });
    const requestId = await queueOne(sluice, sale, "anna");
    proxy.blackhole();
    await bury(cutOff, sale.id, [{ requestId, stage: "write", lastError: "no luck", attempts: 5 }]);
    expect(await inLine()).toEqual([requestId]);
    const hasty = await openProcess(stores, { tuning: { repairAfterMs: 1 } });
    await untilAllIsOld(stores, hasty);
    await forward(hasty, sale.id, await epochInDatabase(stores, sale), 0);
    expect(await inLine()).toEqual([]);
  });
});

describe("a replay", () => {
  it("has the request tried again, once, where it stood in line, and is on record", async () => {
    const requestId = await givenUp();
    const late = await queueOne(sluice, sale, "bert");
    const done = await command();
    const replayed = await Promise.all([replayDeadLetter(sluice, done), replayDeadLetter(sluice, done)]);
    expect(replayed.map(({ status }) => status)).toEqual(["REPLAYED", "REPLAYED"]);
    expect(await inLine()).toEqual([requestId, late]);
    expect(await sluice.queues.states(sale.id, [requestId])).toEqual(["waiting"]);
    const audit = await stores.sql('SELECT actor, action, reason FROM audit_entries WHERE "saleId" = $1 ORDER BY id', [
      sale.id,
    ]);
    expect(audit.slice(2)).toEqual([{ actor: "olga", action: "replayDeadLetter", reason: "seen to" }]);
    await expect(compensateDeadLetter(sluice, done)).rejects.toMatchObject({ code: "CONFLICT" });
    await writeOrders(sluice, sale.id, [requestId, late]);
    await stores.expectSound(sale);
  });

  it("of a request that was decided meanwhile tells Redis so", async () => {
    const requestId = await givenUp();
    await stores.sql(
      `UPDATE requests SET outcome = 'SOLD_OUT', reason = 'STOCK_GONE', "decidedAt" = now() WHERE "requestId" = $1`,
      [requestId],
    );
    await replayDeadLetter(sluice, await command());
    expect(await inRedis(stores, sale, requestId)).toMatchObject({ stage: "SOLD_OUT" });
  });
});

describe("a compensation", () => {
  it("gives the stock back once, however many run at once, and the buyer may reserve again", async () => {
    const requestId = await givenUp();
    const done = await command();
    const all = await Promise.all(Array.from({ length: 10 }, () => compensateDeadLetter(sluice, done)));
    expect(new Set(all.map(({ status }) => status))).toEqual(new Set(["COMPENSATED"]));
    await Promise.all([relay(sluice), relay(sluice)]);
    expect(await remaining(stores, sale)).toBe(3);
    expect(await inRedis(stores, sale, requestId)).toMatchObject({ stage: "FAILED", reason: "PROCESSING_FAILED" });
    // A writer that comes late changes nothing.
    expect(await writeOrders(sluice, sale.id, [requestId])).toMatchObject([{ decision: { outcome: "FAILED" } }]);
    expect((await ask(sluice, sale, "anna", { requestId, quantity: 2 })).kind).toBe("decided");
    expect((await ask(sluice, sale, "anna")).kind).toBe("queued");
    await sluice.journal.drained();
    await expectUnbroken();
  });

  it("comes too late where the writer has decided: then the letter can only be discarded", async () => {
    const requestId = await givenUp();
    await writeOrders(sluice, sale.id, [requestId]);
    const done = await command();
    await expect(compensateDeadLetter(sluice, done)).rejects.toMatchObject({ code: "CONFLICT" });
    expect(await discardDeadLetter(sluice, done)).toMatchObject({ status: "DISCARDED", requestId });
    expect(await remaining(stores, sale)).toBe(1);
    await stores.expectSound(sale);
  });

  it("comes by itself after a while, and discards what was decided", async () => {
    const [anna] = [await givenUp("anna"), await queueOne(sluice, sale, "bert")];
    const bert = (await inLine())[0] ?? "";
    await bury(sluice, sale.id, [{ requestId: bert, stage: "lost", lastError: "lost", attempts: 5 }]);
    await writeOrders(sluice, sale.id, [bert]);
    await compensateOld(sluice, 60_000);
    expect((await letters()).map(({ status }) => status)).toEqual(["OPEN", "OPEN"]);
    await compensateOld(sluice, 0);
    expect(await letters()).toMatchObject([
      { requestId: anna, status: "COMPENSATED" },
      { requestId: bert, status: "DISCARDED" },
    ]);
    await stores.expectSound(sale);
  });
});

it.each([
  ["what isn't there", { id: 999_999n }, "NOT_FOUND"],
  ["another sale's", { saleId: "elsewhere" }, "NOT_FOUND"],
  ["no reason", { reason: " " }, "BAD_USER_INPUT"],
])("a command about %s is refused", async (_name, wrong, code) => {
  await givenUp(randomUUID());
  const done = { ...(await command()), ...wrong };
  for (const run of [replayDeadLetter, compensateDeadLetter, discardDeadLetter]) {
    await expect(run(sluice, done)).rejects.toMatchObject({ code });
  }
  await expect(discardDeadLetter(sluice, await command())).rejects.toMatchObject({ code: "CONFLICT" });
});
