import { beforeAll, describe, expect, it } from "vitest";
import { type WriteResult, writeOrders } from "../../src/operations/write-orders.js";
import type { Resources } from "../../src/resources.js";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy.js";
import { waitFor } from "../support/wait.js";
import { transactionOnTheSide, waitForBlocked } from "./side.js";
import {
  ask,
  compensate,
  inRedis,
  openProcess,
  openSale,
  queueMany,
  queueOne,
  type Stores,
  startStores,
  type TestSale,
} from "./support.js";

let stores: Stores;
let sluice: Resources;
let proxy: TcpProxy;
/** Reaches its database through a network that can be hurt. */
let remote: Resources;

beforeAll(async () => {
  stores = await startStores();
  proxy = await startTcpProxy(stores.databaseUrl);
  sluice = await openProcess(stores);
  remote = await openProcess(stores, {
    databaseUrl: proxy.url(stores.databaseUrl),
    tuning: { sql: { lockMs: 5_000, statementMs: 5_000 } },
  });
  await stores.sql(`
    CREATE FUNCTION refuse_poison() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF NEW."buyerId" LIKE 'poison%' THEN RAISE EXCEPTION 'poison'; END IF;
      RETURN NEW;
    END $$;
    CREATE TRIGGER refuse_poison BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION refuse_poison();
    -- A COMMIT waits here for whoever holds this lock exclusively.
    CREATE FUNCTION pass_gate() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      PERFORM pg_advisory_xact_lock_shared(4711);
      RETURN NULL;
    END $$;
    CREATE CONSTRAINT TRIGGER pass_gate AFTER INSERT ON orders DEFERRABLE INITIALLY DEFERRED
      FOR EACH ROW EXECUTE FUNCTION pass_gate();`);
});

const kinds = (results: readonly WriteResult[]) =>
  results.map((result) => (result.kind === "decided" ? result.decision.outcome : result.kind));

const closeGate = () => transactionOnTheSide(stores, "SELECT pg_advisory_xact_lock(4711)", []);

async function countOrders(sale: TestSale): Promise<number> {
  const [row] = await stores.sql<{ count: number }>('SELECT count(*)::int AS count FROM orders WHERE "saleId" = $1', [
    sale.id,
  ]);
  return row?.count ?? -1;
}

describe("a request that can't be written", () => {
  it("fails alone: its neighbours are written, wherever in the batch it stands", async () => {
    const sale = await openSale(sluice);
    const good = await queueMany(sluice, sale, 6);
    const bad = [await queueOne(sluice, sale, "poison-1"), await queueOne(sluice, sale, "poison-2")];
    const batch = [bad[0] as string, ...good.slice(0, 3), bad[1] as string, ...good.slice(3)];
    const results = await writeOrders(sluice, sale.id, batch);
    expect(kinds(results)).toEqual(batch.map((requestId) => (bad.includes(requestId) ? "failed" : "ORDERED")));
    expect(results[0]).toMatchObject({
      error: expect.objectContaining({ message: expect.stringContaining("poison") }),
    });
    expect(await countOrders(sale)).toBe(6);
    expect(sluice.databaseHealth.isUp()).toBe(true);
    for (const requestId of bad) {
      expect(await inRedis(stores, sale, requestId)).toMatchObject({ stage: "QUEUED" });
      expect(await compensate(sluice, sale, requestId)).toBe(true);
    }
  });
});

describe("a reply to COMMIT that gets lost", () => {
  for (const fault of ["swallowed", "cut"] as const) {
    it(`(${fault}) puts the batch off; the next attempt finds the orders and writes none`, async () => {
      const sale = await openSale(sluice);
      const requestIds = await queueMany(sluice, sale, 3);
      const gate = await closeGate();
      const writing = writeOrders(remote, sale.id, requestIds);
      await waitForBlocked(stores);
      // The COMMIT is under way and waits; what the server says to it never arrives.
      if (fault === "swallowed") proxy.swallowReplies();
      else proxy.cut();
      await gate.commit();
      await waitFor(async () => (await countOrders(sale)) === 3, { what: "the COMMIT to be done" });
      proxy.cut({ once: true });
      proxy.heal();
      expect(kinds(await writing)).toEqual(Array(3).fill("put_off"));
      for (const requestId of requestIds)
        expect(await inRedis(stores, sale, requestId)).toMatchObject({ stage: "QUEUED" });

      await waitFor(
        async () => kinds(await writeOrders(remote, sale.id, requestIds)).every((kind) => kind === "ORDERED"),
        { what: "the orders to be found" },
      );
      expect(await countOrders(sale)).toBe(3);
      await stores.expectSound(sale);
    });
  }
});

describe("rows that somebody else holds", () => {
  it("for too long put the batch off after a bounded time, and nothing of it is written", async () => {
    const sale = await openSale(sluice);
    const requestIds = await queueMany(sluice, sale, 3);
    const side = await transactionOnTheSide(stores, 'SELECT 1 FROM sale_items WHERE "saleId" = $1 FOR UPDATE', [
      sale.id,
    ]);
    const started = performance.now();
    expect(kinds(await writeOrders(sluice, sale.id, requestIds))).toEqual(Array(3).fill("put_off"));
    expect(performance.now() - started).toBeLessThan(8_000);
    expect(await countOrders(sale)).toBe(0);
    expect(sluice.databaseHealth.isUp()).toBe(true);
    await side.rollback();
    expect(kinds(await writeOrders(sluice, sale.id, requestIds))).toEqual(Array(3).fill("ORDERED"));
    await stores.expectSound(sale);
  });

  it("for a moment only delay it", async () => {
    const sale = await openSale(sluice);
    const requestIds = await queueMany(sluice, sale, 3);
    const side = await transactionOnTheSide(stores, 'SELECT 1 FROM sale_items WHERE "saleId" = $1 FOR UPDATE', [
      sale.id,
    ]);
    const writing = writeOrders(sluice, sale.id, requestIds);
    await waitForBlocked(stores);
    await side.rollback();
    expect(kinds(await writing)).toEqual(Array(3).fill("ORDERED"));
  });

  it("in the wrong order end in a deadlock for one of the two, and in the orders all the same", async () => {
    const sale = await openSale(sluice);
    const [requestId] = (await queueMany(sluice, sale, 1)) as [string];
    // The other one holds the stock and wants the request; lockMs is long, so that the deadlock is found before.
    const side = await transactionOnTheSide(stores, 'SELECT 1 FROM sale_items WHERE "saleId" = $1 FOR UPDATE', [
      sale.id,
    ]);
    const writing = writeOrders(remote, sale.id, [requestId]);
    await waitForBlocked(stores);
    await side.query('SELECT 1 FROM requests WHERE "saleId" = $1 FOR UPDATE', [sale.id]).catch(() => {});
    await side.rollback();
    expect(kinds(await writing)).toEqual(["ORDERED"]);
    expect(await countOrders(sale)).toBe(1);
    await stores.expectSound(sale);
  });
});

describe("a database that is away", () => {
  it("puts everything off, is known to be away, and has all of it written when it is back", async () => {
    const sale = await openSale(sluice);
    const requestIds = await queueMany(sluice, sale, 3);
    proxy.cut();
    expect(kinds(await writeOrders(remote, sale.id, requestIds))).toEqual(Array(3).fill("put_off"));
    await waitFor(() => !remote.databaseHealth.isUp(), { what: "the outage to be noticed" });
    // Nothing new is accepted by this process, repeats are answered.
    await expect(ask(remote, sale, "late")).rejects.toMatchObject({ code: "SERVICE_UNAVAILABLE" });
    expect((await ask(remote, sale, "b-0", { requestId: requestIds[0] as string })).kind).toBe("queued");
    proxy.heal();
    await waitFor(() => remote.databaseHealth.isUp(), { what: "the database to be noticed" });
    expect(kinds(await writeOrders(remote, sale.id, requestIds))).toEqual(Array(3).fill("ORDERED"));
    await stores.expectSound(sale);
  });
});
