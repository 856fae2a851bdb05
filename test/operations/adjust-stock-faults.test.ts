import { beforeAll, describe, expect, it } from "vitest";
import { adjustStock } from "../../src/operations/adjust-stock.js";
import { changeSaleState } from "../../src/operations/change-sale-state.js";
import { pushState } from "../../src/operations/push-state.js";
import { listWatchedSales } from "../../src/operations/watched-sales.js";
import type { Resources } from "../../src/resources.js";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy.js";
import { waitFor } from "../support/wait.js";
import { holdLoad, holdStatement, type LoadStep } from "./hold.js";
import { auditsOf, stockOf } from "./order-support.js";
import { transactionOnTheSide, waitForBlocked } from "./side.js";
import {
  ask,
  epochInDatabase,
  makeDraft,
  openProcess,
  openSale,
  order,
  remaining,
  type Stores,
  startStores,
  type TestSale,
} from "./support.js";

let stores: Stores;
let sluice: Resources;
/** Reaches its stores through networks that can be hurt. */
let remote: Resources;
let toRedis: TcpProxy;
let toDatabase: TcpProxy;

beforeAll(async () => {
  stores = await startStores();
  [toRedis, toDatabase] = await Promise.all([startTcpProxy(stores.redis.url), startTcpProxy(stores.databaseUrl)]);
  [sluice, remote] = await Promise.all([
    openProcess(stores),
    openProcess(stores, {
      redisUrl: toRedis.url(stores.redis.url),
      databaseUrl: toDatabase.url(stores.databaseUrl),
      tuning: { sql: { lockMs: 10_000, statementMs: 10_000 } },
    }),
  ]);
  await stores.sql(`
    -- A COMMIT waits here for whoever holds this lock exclusively.
    CREATE FUNCTION pass_gate() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      PERFORM pg_advisory_xact_lock_shared(4711);
      RETURN NULL;
    END $$;
    CREATE CONSTRAINT TRIGGER pass_gate AFTER INSERT ON audit_entries DEFERRABLE INITIALLY DEFERRED
      FOR EACH ROW WHEN (NEW.action = 'adjustStock') EXECUTE FUNCTION pass_gate();`);
});

const closeGate = () => transactionOnTheSide(stores, "SELECT pg_advisory_xact_lock(4711)", []);
const adjust = (by: Resources, sale: TestSale, delta: number) =>
  adjustStock(by, { saleId: sale.id, itemId: sale.itemId, delta, reason: "a recount", actor: "olga" });
/** What a worker does every second. */
const push = async () => {
  await pushState(sluice, await listWatchedSales(sluice));
  await sluice.loads.settled();
};
/** Ten seconds later: a load that nobody ends by word ends with its lease. */
const leaseRunsOut = (sale: TestSale) => stores.sql('UPDATE sales SET "loadingUntil" = NULL WHERE id = $1', [sale.id]);
const healed = async () => {
  toRedis.heal();
  toDatabase.heal();
  await waitFor(() => remote.redis.isUsable() && remote.databaseHealth.isUp(), { what: "the stores to be met again" });
};

describe("an adjustment while a store is away", () => {
  it.each(["Redis", "the database"])("(%s) changes nothing, and says so", async (store) => {
    const sale = await openSale(sluice, { initial: 10 });
    (store === "Redis" ? toRedis : toDatabase).cut();
    await expect(adjust(remote, sale, 5)).rejects.toMatchObject({
      code: "SERVICE_UNAVAILABLE",
      message: "The stock could not be adjusted right now: nothing was changed.",
    });
    await healed();
    expect(await stockOf(stores, sale)).toMatchObject({ initial: 10 });
    expect(await auditsOf(stores, sale)).toEqual([]);
    expect(await epochInDatabase(stores, sale)).toBe(1);
    await order(sluice, sale, "anna");
    expect((await adjust(remote, sale, 5)).items).toMatchObject([{ initial: 15 }]);
    await stores.expectSound(sale);
  });

  it.each<LoadStep>(["begin", "chunks", "finish"])(
    "that is done in the database, before the step %j of its load, is in force once Redis can be loaded",
    async (step) => {
      const sale = await openSale(sluice, { initial: 2 });
      await order(sluice, sale, "anna", { quantity: 2 });
      const held = holdLoad(remote, step);
      const adjusting = adjust(held.resources, sale, 3);
      await Promise.race([held.reached, adjusting]);
      toRedis.cut();
      held.letGo();
      expect((await adjusting).items).toMatchObject([{ initial: 5 }]);
      await remote.loads.settled();
      expect(await remaining(stores, sale)).not.toBe(step === "begin" ? 3 : 0);
      // Nobody can buy before the load, also where Redis has what it had before.
      await ask(sluice, sale, "ben").then(
        ({ kind }) => expect(kind).toBe("sold_out"),
        ({ code }) => expect(code).toBe("SERVICE_UNAVAILABLE"),
      );
      await push();
      expect(await remaining(stores, sale)).toBe(3);
      await order(sluice, sale, "ben", { quantity: 3 });
      expect(await auditsOf(stores, sale)).toHaveLength(1);
      await healed();
      await stores.expectSound(sale);
    },
  );

  it("whose reply to COMMIT is lost is found in the log, also while it is still being committed: once, and in force", async () => {
    const sale = await openSale(sluice, { initial: 10 });
    const gate = await closeGate();
    const adjusting = adjust(remote, sale, 5);
    await waitForBlocked(stores);
    toDatabase.cut({ once: true });
    await waitFor(
      async () =>
        (
          await stores.sql(
            "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
          )
        ).length > 1,
      { what: "it to be asked for behind the COMMIT" },
    );
    await gate.commit();
    expect((await adjusting).items).toMatchObject([{ initial: 15 }]);
    await leaseRunsOut(sale);
    await remote.loads.settled();
    expect(await remaining(stores, sale)).toBe(15);
    expect(await auditsOf(stores, sale)).toHaveLength(1);
    await stores.expectSound(sale);
  });

  it("of which nobody can know whether it is done says that, and where to look", async () => {
    const sale = await openSale(sluice, { initial: 10 });
    const gate = await closeGate();
    const adjusting = adjust(remote, sale, 5).catch((error: Error) => error);
    await waitForBlocked(stores);
    toDatabase.cut();
    expect(await adjusting).toMatchObject({
      code: "SERVICE_UNAVAILABLE",
      message: expect.stringContaining("auditLog"),
    });
    await gate.commit();
    await waitFor(async () => (await auditsOf(stores, sale)).length === 1, { what: "it to be done after all" });
    await healed();
    await leaseRunsOut(sale);
    await push();
    expect(await remaining(stores, sale)).toBe(15);
    await stores.expectSound(sale);
  });
});

it("an adjustment of a draft that is opened in the same moment is part of what is on sale", async () => {
  const sale = await makeDraft(sluice, { initial: 2 });
  // It has found that there is nothing to load.
  const held = holdStatement(sluice, "pg_advisory_xact_lock(");
  const adjusting = adjust(held.resources, sale, 3);
  await Promise.race([held.reached, adjusting]);
  await changeSaleState(sluice, { saleId: sale.id, action: "open", actor: "olga" });
  expect(await remaining(stores, sale)).toBe(2);
  held.letGo();
  expect((await adjusting).items).toMatchObject([{ initial: 5 }]);
  expect(await remaining(stores, sale)).toBe(5);
  expect(await auditsOf(stores, sale)).toHaveLength(1);
  await stores.expectSound(sale);
});
