import { randomUUID } from "node:crypto";
import { beforeAll, describe, expect, it } from "vitest";
import { DAY } from "../../src/domain/time.js";
import { changeSaleState } from "../../src/operations/change-sale-state.js";
import { loadSale } from "../../src/operations/load.js";
import { pushState } from "../../src/operations/push-state.js";
import { listWatchedSales } from "../../src/operations/watched-sales.js";
import { writeOrders } from "../../src/operations/write-orders.js";
import type { Resources } from "../../src/resources.js";
import { waitFor } from "../support/wait.js";
import {
  ask,
  epochInDatabase,
  inRedis,
  makeDraft,
  openProcess,
  openSale,
  order,
  queueMany,
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

beforeAll(async () => {
  stores = await startStores();
  [sluice, other] = await Promise.all([openProcess(stores), openProcess(stores)]);
});

const loadAgain = async (sale: TestSale, by = sluice) =>
  loadSale(by, sale.id, { reason: "drift", mendsEpoch: await epochInDatabase(stores, sale) });

describe("loading a sale", () => {
  it("is what opening does, and opening again does not load again", async () => {
    const sale = await makeDraft(sluice, { initial: 7 });
    expect(await saleField(stores, sale, "phase")).toBeNull();
    const open = () => changeSaleState(sluice, { saleId: sale.id, action: "open", actor: "olga" });
    await open();
    expect(await saleField(stores, sale, "phase")).toBe("READY");
    expect(await remaining(stores, sale)).toBe(7);
    await open();
    expect(await epochInDatabase(stores, sale)).toBe(1);
    await stores.expectSound(sale);
  });

  it("by several at once ends in one epoch that is ready, and all of them have it", async () => {
    const sale = await makeDraft(sluice, { initial: 7 });
    await stores.sql(`UPDATE sales SET state = 'OPEN' WHERE id = $1`, [sale.id]);
    const outcomes = await Promise.all(
      [sluice, other, sluice, other].map((by) => loadSale(by, sale.id, { reason: "opened", mendsEpoch: null })),
    );
    // One of them loads, the others find that it was done.
    expect(outcomes.map((outcome) => outcome.kind).sort()).toEqual([...Array(3).fill("already_loaded"), "loaded"]);
    expect(await saleField(stores, sale, "phase")).toBe("READY");
    const epoch = await epochInDatabase(stores, sale);
    expect(await saleField(stores, sale, "epoch")).toBe(String(epoch));
    expect(outcomes).toContainEqual({ kind: "loaded", epoch });
    const [row] = await stores.sql('SELECT "loadingUntil" FROM sales WHERE id = $1', [sale.id]);
    expect(row).toEqual({ loadingUntil: null });
    await stores.expectSound(sale);
  });

  it("brings back requests, holders, backlog and the order of the line as they were", async () => {
    const sale = await openSale(sluice, { initial: 50 });
    const ordered = await order(sluice, sale, "early", { quantity: 2 });
    const waiting = await queueMany(sluice, sale, 20);
    const keys = ["stock", "holders", "pending"].map((key) => `sluice:{${sale.id}}:${key}`) as [string, string, string];
    const before = {
      stock: await stores.client.hgetall(keys[0]),
      holders: await stores.client.hgetall(keys[1]),
      pending: await stores.client.zrange(keys[2], "0", "-1", "WITHSCORES"),
    };
    expect(await stores.client.zrange(keys[2], "1", "-1")).toEqual(waiting);
    await stores.redis.flushAll();
    await loadAgain(sale);
    expect({
      stock: await stores.client.hgetall(keys[0]),
      holders: await stores.client.hgetall(keys[1]),
      pending: await stores.client.zrange(keys[2], "0", "-1", "WITHSCORES"),
    }).toEqual(before);
    // What they asked is answered as before: the order, the place in line, other contents, one buyer's second wish.
    expect(await ask(sluice, sale, "early", { requestId: ordered, quantity: 2 })).toMatchObject({
      kind: "decided",
      reservation: { stage: "ORDERED" },
    });
    expect(await ask(sluice, sale, "b-7", { requestId: waiting[7] as string })).toMatchObject({
      kind: "queued",
      reservation: { ahead: 7 },
    });
    expect(await ask(sluice, sale, "b-7", { requestId: waiting[7] as string, quantity: 2 })).toMatchObject({
      kind: "request_conflict",
    });
    expect(await ask(sluice, sale, "early")).toMatchObject({ kind: "already_reserved" });
    await writeOrders(sluice, sale.id, waiting);
    await stores.expectSound(sale);
  });

  it("of 5,000 requests takes a second or two, and the line keeps its order", async () => {
    const sale = await openSale(sluice, { initial: 10_000 });
    await stores.sql(
      `INSERT INTO requests ("saleId", "requestId", "buyerId", "itemId", quantity, epoch, seq, "acceptedAt", "dueAt", "queuedEpoch")
       SELECT $1, gen_random_uuid(), 'crowd-' || n, $2, 1, 1, 1000000 + n, now(), now(), 1 FROM generate_series(1, 5000) n`,
      [sale.id, sale.itemId],
    );
    const started = performance.now();
    await loadAgain(sale);
    expect(performance.now() - started).toBeLessThan(3_000);
    const rows = await stores.sql<{ requestId: string }>(
      'SELECT "requestId" FROM requests WHERE "saleId" = $1 ORDER BY seq',
      [sale.id],
    );
    expect(await stores.client.zrange(`sluice:{${sale.id}}:pending`, 1, -1)).toEqual(
      rows.map(({ requestId }) => requestId),
    );
    expect(await remaining(stores, sale)).toBe(5_000);
  });

  it.each<[string, (key: (name: string) => string) => Promise<unknown>]>([
    ["a sale that is no hash", (key) => stores.client.set(key("sale"), "a text")],
    ["change numbers that are none", (key) => stores.client.hset(key("sale"), "seq", "none")],
    ["change numbers beyond all reason", (key) => stores.client.hset(key("sale"), "seq", "9007199254740993")],
    ["an epoch that is none", (key) => stores.client.hset(key("sale"), "epoch", "none")],
    ["stock that is no hash", (key) => stores.client.set(key("stock"), "a text")],
    ["an epoch far ahead of the database's", (key) => stores.client.hset(key("sale"), "epoch", 500)],
    ["holders that are no hash", (key) => stores.client.set(key("holders"), "a text")],
    ["holders that were deleted", (key) => stores.client.del(key("holders"))],
    ["a backlog that is no set", (key) => stores.client.set(key("pending"), "a text")],
  ])("mends %s by itself as soon as somebody meets it", async (_, damage) => {
    const sale = await openSale(sluice, { initial: 9 });
    const requestId = await queueOne(sluice, sale, "anna");
    // Right behind an opening it would take seconds: a process may know an epoch that is a second old.
    await sluice.sales.read(sale.id);
    await damage((name) => `sluice:{${sale.id}}:${name}`);
    await pushState(
      sluice,
      (await listWatchedSales(sluice)).filter(({ id }) => id === sale.id),
    );
    const late = randomUUID();
    await waitFor(async () => (await ask(sluice, sale, "bert", { requestId: late })).kind === "queued", {
      what: "another buyer to be served",
    });
    await writeOrders(sluice, sale.id, [requestId, late]);
    await stores.expectSound(sale);
  });

  it("offers none where more was promised than there is", async () => {
    const sale = await openSale(sluice, { initial: 3 });
    await queueMany(sluice, sale, 3);
    // Somebody has taken units away behind our backs.
    await stores.sql(`UPDATE sale_items SET initial = 1, available = 1 WHERE "saleId" = $1`, [sale.id]);
    await loadAgain(sale);
    expect(await remaining(stores, sale)).toBe(0);
    expect((await ask(sluice, sale, "late")).kind).toBe("sold_out");
  });

  it("never lets a change number go back, also where an epoch's ran past its million", async () => {
    const sale = await openSale(sluice, { initial: 9 });
    const seq = async () => Number(await saleField(stores, sale, "seq"));
    let last = await seq();
    for (const wipe of [false, true]) {
      await stores.client.hincrby(`sluice:{${sale.id}}:sale`, "seq", 2_840_000);
      last = await seq();
      // Noted every second by each worker; up to 100,000 more may have happened since.
      const served = async () => (await listWatchedSales(sluice)).filter(({ id }) => id === sale.id);
      await pushState(sluice, await served());
      await stores.client.hincrby(`sluice:{${sale.id}}:sale`, "seq", 100_000);
      last = await seq();
      await pushState(sluice, await served());
      if (wipe) await stores.redis.flushAll();
      await loadAgain(sale);
      expect(await seq()).toBeGreaterThan(last);
    }
    expect(await queueOne(sluice, sale, "anna")).toBeTruthy();
  });

  it("is refused for a draft, an unknown sale, and one that closed more than a week ago", async () => {
    const draft = await makeDraft(sluice);
    const load = (saleId: string) => loadSale(sluice, saleId, { reason: "not_loaded", mendsEpoch: null });
    expect(await load(draft.id)).toEqual({ kind: "not_loadable" });
    expect(await load("no-such-sale")).toEqual({ kind: "not_loadable" });

    const sale = await openSale(sluice);
    const known = await order(sluice, sale, "anna", { quantity: 2 });
    await stores.sql(
      `UPDATE sales SET state = 'CLOSED', "opensAt" = now() - interval '9 days', "closesAt" = $2 WHERE id = $1`,
      [sale.id, new Date(Date.now() - 7 * DAY - 5_000)],
    );
    await stores.redis.flushAll();
    await sluice.sales.read(sale.id);
    expect(await load(sale.id)).toEqual({ kind: "not_loadable" });
    expect(await ask(sluice, sale, "anna", { requestId: known, quantity: 2 })).toMatchObject({
      kind: "decided",
      reservation: { stage: "ORDERED", order: { status: "PENDING_PAYMENT" } },
    });
    expect((await ask(sluice, sale, "anna", { requestId: known, quantity: 1 })).kind).toBe("request_conflict");
    expect((await ask(sluice, sale, "bert")).kind).toBe("ended");
    expect(await inRedis(stores, sale, known)).toEqual({});
  });
});
