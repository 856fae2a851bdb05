import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { forward } from "../../src/operations/forward.js";
import { loadSale } from "../../src/operations/load.js";
import { relay } from "../../src/operations/relay.js";
import { writeOrders } from "../../src/operations/write-orders.js";
import type { Resources } from "../../src/resources.js";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy.js";
import { untilAllIsOld } from "./clocks.js";
import {
  acceptOnly,
  changeUntold,
  compensate,
  epochInDatabase,
  inRedis,
  openProcess,
  openSale,
  queueMany,
  queueOne,
  remaining,
  type Stores,
  startStores,
  type TestSale,
} from "./support.js";

let stores: Stores;
let sluice: Resources;
/** A forwarder to whom everything that waits has waited for too long. */
let hasty: Resources;
let proxy: TcpProxy;
/** A worker that can be cut off from Redis. */
let cutOff: Resources;
let sale: TestSale;

beforeAll(async () => {
  stores = await startStores();
  proxy = await startTcpProxy(stores.redis.url);
  [sluice, hasty, cutOff] = await Promise.all([
    openProcess(stores),
    openProcess(stores, { tuning: { repairAfterMs: 1 } }),
    openProcess(stores, { redisUrl: proxy.url(stores.redis.url) }),
  ]);
});

beforeEach(async () => {
  sale = await openSale(sluice, { initial: 2_000 });
});

async function forwardOnce(by = hasty, afterSeq = 0) {
  if (by === hasty) await untilAllIsOld(stores, hasty);
  return forward(by, sale.id, await epochInDatabase(stores, sale), afterSeq);
}

/** Decides requests without Redis hearing of it. */
async function decideUnheard(requestIds: readonly string[]) {
  proxy.cut();
  const results = await writeOrders(cutOff, sale.id, requestIds);
  expect(new Set(results.map(({ kind }) => kind))).toEqual(new Set(["decided"]));
  proxy.heal();
}

const pending = async () => (await stores.client.zcard(`sluice:{${sale.id}}:pending`)) - 1;

describe("a request that Redis holds pending for too long", () => {
  it("and that was never journaled is journaled, with the epoch and the number that it was accepted with", async () => {
    const accepted = await acceptOnly(sluice, sale, "anna");
    expect(await forwardOnce(sluice)).toBe(0);
    expect(await stores.sql('SELECT 1 FROM requests WHERE "saleId" = $1', [sale.id])).toEqual([]);

    await forwardOnce();
    await hasty.journal.drained();
    const rows = await stores.sql(
      'SELECT "requestId", "buyerId", quantity, epoch, seq::int AS seq, "acceptedAt" FROM requests WHERE "saleId" = $1',
      [sale.id],
    );
    const { itemId: _, ...expected } = accepted;
    expect(rows).toEqual([expected]);
    expect(await sluice.queues.states(sale.id, [accepted.requestId])).toEqual(["waiting"]);
    expect(await inRedis(stores, sale, accepted.requestId)).toMatchObject({ stage: "QUEUED" });
    await writeOrders(sluice, sale.id, [accepted.requestId]);
    await stores.expectSound(sale);
  });

  it("and that was never journaled is forgotten where the sale was loaded meanwhile", async () => {
    const accepted = await acceptOnly(sluice, sale, "anna");
    await loadSale(sluice, sale.id, { reason: "drift", mendsEpoch: 1 });
    expect(await hasty.journal.add(sale.id, accepted)).toEqual({ kind: "refused" });
    await forwardOnce();
    await stores.expectSound(sale);
  });

  it("is journaled once by two forwarders", async () => {
    const accepted = await acceptOnly(sluice, sale, "anna");
    await Promise.all([forwardOnce(), forwardOnce(), sluice.journal.add(sale.id, accepted)]);
    await Promise.all([hasty.journal.drained(), sluice.journal.drained()]);
    await writeOrders(sluice, sale.id, [accepted.requestId]);
    await stores.expectSound(sale);
  });

  it("and that is decided is advanced", async () => {
    const requestIds = await queueMany(sluice, sale, 3);
    await decideUnheard(requestIds);
    expect(await pending()).toBe(3);
    await forwardOnce();
    expect(await pending()).toBe(0);
    expect(await inRedis(stores, sale, requestIds[0] as string)).toMatchObject({ stage: "ORDERED" });
    await stores.expectSound(sale);
    expect(await epochInDatabase(stores, sale)).toBe(1);
  });

  it("and whose order was cancelled since gives its units back, though its event comes after the forwarder", async () => {
    const requestId = await queueOne(sluice, sale, "anna", { quantity: 3 });
    await decideUnheard([requestId]);
    await changeUntold(sluice, sale, requestId);
    await forwardOnce();
    await relay(sluice);
    expect(await remaining(stores, sale)).toBe(2_000);
    expect(await inRedis(stores, sale, requestId)).toMatchObject({ stage: "CANCELLED" });
    await stores.expectSound(sale);
  });

  it("and that was compensated gives its units back, though its event comes after the forwarder", async () => {
    const requestId = await queueOne(sluice, sale, "anna", { quantity: 3 });
    await compensate(sluice, sale, requestId);
    await forwardOnce();
    await relay(sluice);
    expect(await remaining(stores, sale)).toBe(2_000);
    expect(await epochInDatabase(stores, sale)).toBe(1);
    await stores.expectSound(sale);
  });

  it("and that the database has refused gets the sale loaded again, whoever refused it and died", async () => {
    const requestId = await queueOne(sluice, sale, "anna", { quantity: 3 });
    await stores.sql(
      `UPDATE requests SET outcome = 'SOLD_OUT', reason = 'STOCK_GONE', "decidedAt" = now() WHERE "requestId" = $1`,
      [requestId],
    );
    await forwardOnce();
    await hasty.loads.settled();
    expect(await remaining(stores, sale)).toBe(2_000);
    await stores.expectSound(sale);
  });

  it("and that it can't read any more gets the sale loaded again, and keeps nobody else waiting", async () => {
    const lost = await acceptOnly(sluice, sale, "anna");
    await stores.client.del(`sluice:{${sale.id}}:r:${lost.requestId}`);
    const behind = await acceptOnly(sluice, sale, "bert");
    await forwardOnce();
    await hasty.loads.settled();
    await hasty.journal.drained();
    expect(await remaining(stores, sale)).toBe(1_999);
    await writeOrders(sluice, sale.id, [behind.requestId]);
    await stores.expectSound(sale);
  });

  it("is found among more than can be seen to at once", async () => {
    const buyers = Array.from({ length: 1_203 }, (_, at) => `crowd-${at}`);
    await Promise.all(buyers.map((buyerId) => acceptOnly(sluice, sale, buyerId)));
    let afterSeq = 0;
    let turns = 0;
    do {
      afterSeq = await forwardOnce(hasty, afterSeq);
      turns += 1;
    } while (afterSeq > 0);
    expect(turns).toBe(3);
    const [row] = await stores.sql('SELECT count(*)::int AS count FROM requests WHERE "saleId" = $1', [sale.id]);
    expect(row).toEqual({ count: 1_203 });
  });
});
