import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { DAY } from "../../src/domain/time.js";
import { loadSale } from "../../src/operations/load.js";
import { relay } from "../../src/operations/relay.js";
import { writeOrders } from "../../src/operations/write-orders.js";
import type { Resources } from "../../src/resources.js";
import { startTcpProxy } from "../support/tcp-proxy.js";
import { waitFor } from "../support/wait.js";
import { holdLoad } from "./hold.js";
import {
  ask,
  changeUntold,
  epochInDatabase,
  inRedis,
  openProcess,
  openSale,
  order,
  queueOne,
  remaining,
  type Stores,
  saleField,
  startStores,
  type TestSale,
} from "./support.js";

let stores: Stores;
let sluice: Resources;
let other: Resources;
let sale: TestSale;

beforeAll(async () => {
  stores = await startStores();
  [sluice, other] = await Promise.all([openProcess(stores), openProcess(stores)]);
});

beforeEach(async () => {
  sale = await openSale(sluice, { initial: 3 });
});

/** How the sale's events stand. */
const events = () =>
  stores.sql(
    'SELECT "appliedAt" IS NOT NULL AS applied, absorbed FROM request_events WHERE "saleId" = $1 ORDER BY id',
    [sale.id],
  );
const WAITING = { applied: false, absorbed: false };
const APPLIED = { applied: true, absorbed: false };
const ABSORBED = { applied: true, absorbed: true };

describe("an event", () => {
  it("gives its units back once, however often and by however many it is carried", async () => {
    const requestId = await order(sluice, sale, "anna", { quantity: 2 });
    await changeUntold(sluice, sale, requestId);
    await Promise.all([relay(sluice), relay(other), relay(sluice)]);
    // A relay that died before it could mark the event.
    await stores.sql('UPDATE request_events SET "appliedAt" = NULL WHERE "saleId" = $1', [sale.id]);
    await Promise.all([relay(sluice), relay(other)]);
    expect(await remaining(stores, sale)).toBe(3);
    expect(await events()).toEqual([APPLIED]);
    await stores.expectSound(sale);
  });

  it("lets the buyer reserve again, and tells everybody that there is stock once more", async () => {
    const requestId = await order(sluice, sale, "anna", { quantity: 3 });
    expect((await ask(sluice, sale, "bert")).kind).toBe("sold_out");
    expect((await ask(sluice, sale, "anna")).kind).toBe("already_reserved");
    const generation = Number(await saleField(stores, sale, `g:${sale.itemId}`));
    await changeUntold(sluice, sale, requestId);
    await relay(sluice);
    expect(Number(await saleField(stores, sale, `g:${sale.itemId}`))).toBe(generation + 1);
    const again = await order(sluice, sale, "anna", { quantity: 2 });
    await order(sluice, sale, "bert");
    // The old one keeps its old answer, and its late repeats don't free what is held now.
    expect(await ask(sluice, sale, "anna", { requestId, quantity: 3 })).toMatchObject({
      kind: "decided",
      reservation: { stage: "CANCELLED", reason: "CANCELLED_BY_BUYER" },
    });
    await writeOrders(sluice, sale.id, [requestId]);
    expect(await stores.client.hget(`sluice:{${sale.id}}:holders`, "anna")).toBe(again);
    await stores.expectSound(sale);
  });

  it("without units moves the request on and gives nothing back", async () => {
    const requestId = await order(sluice, sale, "anna", { quantity: 2 });
    await changeUntold(sluice, sale, requestId, "pay");
    await relay(sluice);
    expect(await inRedis(stores, sale, requestId)).toMatchObject({ stage: "PAID", rank: "40" });
    expect(await remaining(stores, sale)).toBe(1);
    expect((await ask(sluice, sale, "anna")).kind).toBe("already_reserved");
    await stores.expectSound(sale);
  });

  it("that comes before its request's SUCCESS gives its units back, and the SUCCESS does no harm", async () => {
    const proxy = await startTcpProxy(stores.redis.url);
    const cutOff = await openProcess(stores, { redisUrl: proxy.url(stores.redis.url) });
    const requestId = await queueOne(sluice, sale, "anna", { quantity: 2 });
    proxy.cut();
    await writeOrders(cutOff, sale.id, [requestId]);
    proxy.heal();
    await changeUntold(sluice, sale, requestId);
    await relay(sluice);
    expect(await remaining(stores, sale)).toBe(3);
    expect(await stores.client.zrange(`sluice:{${sale.id}}:pending`, 1, -1)).toEqual([]);
    await writeOrders(sluice, sale.id, [requestId]);
    expect(await inRedis(stores, sale, requestId)).toMatchObject({ stage: "CANCELLED", rank: "90" });
    await stores.expectSound(sale);
  });

  it("waits while Redis is away, and is applied when it is back", async () => {
    const requestId = await order(sluice, sale, "anna", { quantity: 2 });
    await changeUntold(sluice, sale, requestId);
    await stores.redis.stop();
    await expect(relay(sluice)).rejects.toThrow();
    expect(await events()).toEqual([WAITING]);
    await stores.redis.restart();
    // Another server than the one that was loaded: the load takes the event in.
    await waitFor(
      async () => {
        await relay(sluice);
        return (await remaining(stores, sale)) === 3 && (await saleField(stores, sale, "phase")) === "READY";
      },
      { what: "the event to be taken in" },
    );
    await sluice.loads.settled();
    await relay(sluice);
    expect(await events()).toEqual([ABSORBED]);
    await stores.expectSound(sale);
  });

  it("is carried later while the sale is being loaded", async () => {
    const requestId = await order(sluice, sale, "anna", { quantity: 2 });
    const held = holdLoad(sluice, "chunks");
    const loading = loadSale(held.resources, sale.id, { reason: "drift", mendsEpoch: 1 });
    await held.reached;
    await changeUntold(sluice, sale, requestId);
    await relay(other);
    expect(await events()).toEqual([WAITING]);
    held.letGo();
    await loading;
    await relay(other);
    expect(await events()).toEqual([APPLIED]);
    await stores.expectSound(sale);
  });

  it("of a sale that is not in Redis has it loaded, which absorbs the event", async () => {
    const requestId = await order(sluice, sale, "anna", { quantity: 2 });
    await changeUntold(sluice, sale, requestId);
    await stores.redis.flushAll();
    await relay(sluice);
    await sluice.loads.settled();
    await stores.expectSound(sale);
    await relay(sluice);
    expect(await events()).toEqual([ABSORBED]);
    await stores.expectSound(sale);
    expect(await inRedis(stores, sale, requestId)).toMatchObject({ stage: "CANCELLED" });
  });

  it("of a request that Redis has lost is never called applied: the sale is loaded again", async () => {
    const requestId = await order(sluice, sale, "anna", { quantity: 2 });
    await changeUntold(sluice, sale, requestId);
    await stores.client.del(`sluice:{${sale.id}}:r:${requestId}`);
    await relay(sluice);
    await sluice.loads.settled();
    expect(await epochInDatabase(stores, sale)).toBe(2);
    await stores.expectSound(sale);
    await relay(sluice);
    expect(await events()).toEqual([ABSORBED]);
    await stores.expectSound(sale);
  });

  it("of a sale that closed more than a week ago counts as absorbed", async () => {
    const requestId = await order(sluice, sale, "anna", { quantity: 2 });
    await changeUntold(sluice, sale, requestId);
    await stores.sql(
      `UPDATE sales SET state = 'CLOSED', "opensAt" = now() - interval '9 days', "closesAt" = $2 WHERE id = $1`,
      [sale.id, new Date(Date.now() - 7 * DAY - 5_000)],
    );
    await stores.redis.flushAll();
    await relay(sluice);
    expect(await events()).toEqual([ABSORBED]);
    expect(await stores.client.keys(`sluice:{${sale.id}}:*`)).toEqual([]);
  });

  it("that can't be read doesn't stand in the way of other sales", async () => {
    const requestId = await order(sluice, sale, "anna");
    const neighbour = await openSale(sluice, { initial: 3 });
    const theirs = await order(sluice, neighbour, "anna");
    await stores.sql(
      `INSERT INTO request_events ("saleId", "requestId", epoch, "fromStage", "toStage") VALUES ($1, $2, 1, 'ORDERED', 'NOWHERE')`,
      [sale.id, requestId],
    );
    await changeUntold(sluice, neighbour, theirs);
    await expect(relay(sluice)).rejects.toThrow("unknown stage");
    await stores.expectSound(neighbour);
    await stores.sql(`DELETE FROM request_events WHERE "toStage" = 'NOWHERE'`);
  });

  it("is found among more than can be carried at once", async () => {
    const crowded = await openSale(sluice, { initial: 1_203 });
    await stores.sql(
      `WITH r AS (
         INSERT INTO requests ("saleId", "requestId", "buyerId", "itemId", quantity, epoch, seq, "acceptedAt", "dueAt", "queuedEpoch")
         SELECT $1, gen_random_uuid(), 'crowd-' || n, $2, 1, 1, 1000000 + n, now(), now(), 1 FROM generate_series(1, 1203) n
         RETURNING "requestId")
       SELECT count(*) FROM r`,
      [crowded.id, crowded.itemId],
    );
    await loadSale(sluice, crowded.id, { reason: "drift", mendsEpoch: 1 });
    expect(await remaining(stores, crowded)).toBe(0);
    await stores.sql(
      `WITH decided AS (
         UPDATE requests SET outcome = 'FAILED', reason = 'PROCESSING_FAILED', "decidedAt" = now()
         WHERE "saleId" = $1 RETURNING "requestId")
       INSERT INTO request_events ("saleId", "requestId", epoch, "fromStage", "toStage", reason, units)
       SELECT $1, "requestId", 2, 'QUEUED', 'FAILED', 'PROCESSING_FAILED', 1 FROM decided`,
      [crowded.id],
    );
    await Promise.all([relay(sluice), relay(other)]);
    await stores.expectSound(crowded);
    expect(await remaining(stores, crowded)).toBe(1_203);
  });
});
