import { randomUUID } from "node:crypto";
import { beforeAll, describe, expect, it } from "vitest";
import { takeFenceShared } from "../../src/db/fence.js";
import { findJournaled, insertRequests } from "../../src/db/journal.js";
import { inTransaction } from "../../src/db/transaction.js";
import { changeSaleState } from "../../src/operations/change-sale-state.js";
import { loadSale } from "../../src/operations/load.js";
import { relay } from "../../src/operations/relay.js";
import { writeOrders } from "../../src/operations/write-orders.js";
import type { Resources } from "../../src/resources.js";
import { waitFor } from "../support/wait.js";
import { holdLoad, type LoadStep, makeSignal } from "./hold.js";
import {
  acceptOnly,
  ask,
  changeUntold,
  compensate,
  epochInDatabase,
  inRedis,
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

beforeAll(async () => {
  stores = await startStores();
  sluice = await openProcess(stores);
});

/** A load that stands before one of its steps; `finish` lets it go and waits for its end. */
async function loadUpTo(sale: TestSale, step: LoadStep) {
  const held = holdLoad(sluice, step);
  const loading = loadSale(held.resources, sale.id, {
    reason: "drift",
    mendsEpoch: await epochInDatabase(stores, sale),
  });
  await Promise.race([held.reached, loading]);
  return {
    finish: async () => {
      held.letGo();
      expect((await loading).kind).toBe("loaded");
    },
  };
}

const loadAgain = async (sale: TestSale) =>
  loadSale(sluice, sale.id, { reason: "drift", mendsEpoch: await epochInDatabase(stores, sale) });

describe("an event", () => {
  it("emitted before a load is absorbed by it, and no relay gives its units back again", async () => {
    const sale = await openSale(sluice, { initial: 10 });
    const requestId = await order(sluice, sale, "anna", { quantity: 3 });
    await changeUntold(sluice, sale, requestId);
    await loadAgain(sale);
    expect(await remaining(stores, sale)).toBe(10);
    await relay(sluice);
    await stores.expectSound(sale);
    expect(await inRedis(stores, sale, requestId)).toMatchObject({ stage: "CANCELLED", rank: "90" });
    expect(await stores.sql('SELECT absorbed FROM request_events WHERE "saleId" = $1', [sale.id])).toEqual([
      { absorbed: true },
    ]);
  });

  for (const step of ["begin", "chunks", "finish"] as const) {
    it(`emitted before the step "${step}" of a load is applied once, afterwards`, async () => {
      const sale = await openSale(sluice, { initial: 10 });
      const requestId = await order(sluice, sale, "anna", { quantity: 3 });
      const load = await loadUpTo(sale, step);
      await changeUntold(sluice, sale, requestId);
      // Too early: Redis is not in the event's epoch yet, or not ready.
      await relay(sluice);
      await load.finish();
      expect(await inRedis(stores, sale, requestId)).toMatchObject({ stage: "ORDERED" });
      expect(await remaining(stores, sale)).toBe(7);
      expect((await ask(sluice, sale, "anna")).kind).toBe("already_reserved");
      await stores.expectSound(sale);

      await Promise.all([relay(sluice), relay(sluice)]);
      await relay(sluice);
      expect(await remaining(stores, sale)).toBe(10);
      await stores.expectSound(sale);
      const [event] = await stores.sql('SELECT absorbed FROM request_events WHERE "saleId" = $1', [sale.id]);
      expect(event).toEqual({ absorbed: false });
      await order(sluice, sale, "anna");
      await stores.expectSound(sale);
    });

    it(`of a compensation before the step "${step}" of a load is applied once, afterwards`, async () => {
      const sale = await openSale(sluice, { initial: 10 });
      const requestId = await queueOne(sluice, sale, "anna", { quantity: 3 });
      const load = await loadUpTo(sale, step);
      expect(await compensate(sluice, sale, requestId)).toBe(true);
      await load.finish();
      expect(await remaining(stores, sale)).toBe(7);
      await relay(sluice);
      await stores.expectSound(sale);
      expect(await remaining(stores, sale)).toBe(10);
    });
  }
});

describe("the order writer", () => {
  for (const step of ["begin", "chunks", "finish"] as const) {
    it(`may commit before the step "${step}" of a load`, async () => {
      const sale = await openSale(sluice, { initial: 10 });
      const requestIds = await queueMany(sluice, sale, 4);
      const load = await loadUpTo(sale, step);
      const writing = writeOrders(sluice, sale.id, requestIds);
      await waitFor(
        async () => {
          const [row] = await stores.sql<{ count: number }>(
            'SELECT count(*)::int AS count FROM orders WHERE "saleId" = $1',
            [sale.id],
          );
          return row?.count === 4;
        },
        { what: "the orders to be committed" },
      );
      await load.finish();
      // It waits for the load rather than leaving its buyers to the forwarder.
      expect((await writing).map(({ kind }) => kind)).toEqual(Array(4).fill("decided"));
      await stores.expectSound(sale);
    });
  }
});

describe("a journal", () => {
  it("that comes with an older epoch is refused, and its unit is not lost", async () => {
    const sale = await openSale(sluice, { initial: 1 });
    const late = await acceptOnly(sluice, sale, "slow");
    await loadAgain(sale);
    expect(await sluice.journal.add(sale.id, late)).toEqual({ kind: "refused" });
    await sluice.loads.settled();
    expect(await remaining(stores, sale)).toBe(1);
    const quick = await queueOne(sluice, sale, "quick");
    await writeOrders(sluice, sale.id, [quick]);
    expect((await ask(sluice, sale, "slow", { requestId: late.requestId })).kind).toBe("sold_out");
    await stores.expectSound(sale);
  });

  it("that holds the fence before a load is in the load", async () => {
    const sale = await openSale(sluice, { initial: 5 });
    const row = await acceptOnly(sluice, sale, "anna");
    const release = makeSignal();
    const inserted = makeSignal();
    const journaling = inTransaction(sluice.db, async (tx) => {
      await takeFenceShared(tx, sale.id);
      await insertRequests(tx, sale.id, [row], 30_000);
      inserted.give();
      await release.given;
    });
    await inserted.given;
    const loading = loadAgain(sale);
    await waitFor(
      async () => {
        const waiting = await stores.sql(
          "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
        );
        return waiting.length > 0;
      },
      { what: "the load to wait at the fence" },
    );
    release.give();
    await journaling;
    await loading;
    expect(await remaining(stores, sale)).toBe(4);
    expect(await ask(sluice, sale, "anna", { requestId: row.requestId })).toMatchObject({
      kind: "queued",
      reservation: { stage: "QUEUED", ahead: 0 },
    });
    await writeOrders(sluice, sale.id, [row.requestId]);
    await stores.expectSound(sale);
  });

  it("after journal without end doesn't keep loads out", async () => {
    const sale = await openSale(sluice, { initial: 100_000 });
    const writers = await Promise.all([openProcess(stores), openProcess(stores)]);
    let stopped = false;
    let journaled = 0;
    const streams = writers.flatMap((writer) =>
      Array.from({ length: 4 }, async () => {
        while (!stopped) {
          const rows = Array.from({ length: 20 }, () => ({
            requestId: randomUUID(),
            buyerId: "b",
            itemId: sale.itemId,
            quantity: 1,
            epoch: 1,
            seq: 1,
            acceptedAt: new Date(),
          }));
          await inTransaction(writer.db, async (tx) => {
            await takeFenceShared(tx, sale.id);
            await insertRequests(tx, sale.id, rows, 30_000);
            await findJournaled(tx, sale.id, [rows[0]?.requestId ?? ""]);
          });
          journaled += 1;
        }
      }),
    );
    await waitFor(() => journaled > 20, { what: "the stream of journals to run" });
    const started = performance.now();
    for (let load = 0; load < 5; load += 1) {
      const before = journaled;
      expect((await loadAgain(sale)).kind).toBe("loaded");
      await waitFor(() => journaled > before, { what: "the stream to go on" });
    }
    expect(performance.now() - started).toBeLessThan(10_000);
    stopped = true;
    await Promise.all(streams);
    expect(await epochInDatabase(stores, sale)).toBe(6);
  });
});

describe("a pause", () => {
  for (const step of ["begin", "chunks", "finish"] as const) {
    it(`said before the step "${step}" of a load is in force after it`, async () => {
      const sale = await openSale(sluice);
      const load = await loadUpTo(sale, step);
      await changeSaleState(sluice, { saleId: sale.id, action: "pause", actor: "olga", reason: "a leak" });
      await load.finish();
      expect(await saleField(stores, sale, "state")).toBe("PAUSED");
      expect((await ask(sluice, sale, "anna")).kind).toBe("paused");
    });
  }
});
