import { randomUUID } from "node:crypto";
import { beforeAll, describe, expect, it } from "vitest";
import { changeSaleState } from "../../src/operations/change-sale-state.js";
import { relay } from "../../src/operations/relay.js";
import { writeOrders } from "../../src/operations/write-orders.js";
import type { Resources } from "../../src/resources.js";
import { type NodeProcess, spawnNode } from "../support/processes.js";
import { waitFor } from "../support/wait.js";
import {
  ask,
  changeUntold,
  environmentOf,
  epochInDatabase,
  inRedis,
  openProcess,
  openSale,
  order,
  queueMany,
  type Stores,
  saleField,
  startStores,
  type TestSale,
} from "./support.js";

const POINTS = ["load.after_epoch", "load.after_chunk", "load.before_ready"];

let stores: Stores;
let sluice: Resources;

beforeAll(async () => {
  stores = await startStores();
  sluice = await openProcess(stores);
});

/** A process of its own that loads the sale again and stops at a named point. */
async function loadElsewhere(sale: TestSale, failpoint: string): Promise<NodeProcess> {
  const mendsEpoch = await epochInDatabase(stores, sale);
  const loader = await spawnNode("test/operations/fixtures/load-sale.ts", {
    ...environmentOf(stores),
    SALE_ID: sale.id,
    MENDS_EPOCH: String(mendsEpoch),
    SLUICE_FAILPOINTS: failpoint,
  });
  await loader.waitForLine(/^failpoint/);
  return loader;
}

/** The ten seconds of a lease, gone by. */
const endLease = (sale: TestSale) => stores.sql('UPDATE sales SET "loadingUntil" = now() WHERE id = $1', [sale.id]);

async function untilQueued(sale: TestSale, buyerId: string): Promise<string> {
  const requestId = randomUUID();
  await waitFor(async () => (await ask(sluice, sale, buyerId, { requestId })).kind === "queued", {
    what: "a buyer to be served again",
  });
  return requestId;
}

describe("a load whose process died", () => {
  for (const point of POINTS) {
    it(`at ${point} leaves the sale closed to buyers until another one loads it in a newer epoch`, async () => {
      const sale = await openSale(sluice, { initial: 20 });
      const waiting = await queueMany(sluice, sale, 5);
      const loader = await loadElsewhere(sale, `${point}=kill`);
      expect((await loader.exited).signal).toBe("SIGKILL");
      expect(await epochInDatabase(stores, sale)).toBe(2);

      // The lease of the dead one still runs: nobody is served, and nobody is sold what can't be made durable.
      const early = randomUUID();
      await expect(ask(sluice, sale, "early", { requestId: early })).rejects.toMatchObject({
        code: "SERVICE_UNAVAILABLE",
      });
      expect(await stores.sql('SELECT 1 FROM requests WHERE "requestId" = $1', [early])).toEqual([]);

      await endLease(sale);
      const late = await untilQueued(sale, "late");
      expect(await epochInDatabase(stores, sale)).toBe(3);
      expect(await saleField(stores, sale, "epoch")).toBe("3");
      await writeOrders(sluice, sale.id, [...waiting, late]);
      expect((await ask(sluice, sale, "early", { requestId: early })).kind).toBe("queued");
      await writeOrders(sluice, sale.id, [early]);
      await stores.expectSound(sale);
    });

    it(`at ${point} in a sale that has closed doesn't keep its events for ever`, async () => {
      const sale = await openSale(sluice, { initial: 20 });
      const requestId = await order(sluice, sale, "anna", { quantity: 2 });
      await changeSaleState(sluice, { saleId: sale.id, action: "close", actor: "olga" });
      await (await loadElsewhere(sale, `${point}=kill`)).exited;
      await changeUntold(sluice, sale, requestId);
      await endLease(sale);
      // Nobody buys here any more, and no queue of it is served: the relay alone sees that something is wrong.
      await waitFor(
        async () => {
          await relay(sluice);
          return (await inRedis(stores, sale, requestId)).stage === "CANCELLED";
        },
        { what: "the cancellation to arrive in Redis" },
      );
      await stores.expectSound(sale);
    });
  }
});

describe("a load whose process was frozen", () => {
  for (const point of POINTS) {
    it(`at ${point} is overtaken, and does no harm when it thaws`, async () => {
      const sale = await openSale(sluice, { initial: 20 });
      const waiting = await queueMany(sluice, sale, 5);
      const loader = await loadElsewhere(sale, `${point}=freeze`);
      await endLease(sale);
      const late = await untilQueued(sale, "late");
      loader.kill("SIGCONT");
      await loader.waitForLine(/^outcome \{"kind":"already_loaded","epoch":3\}/);
      expect(await saleField(stores, sale, "phase")).toBe("READY");
      await writeOrders(sluice, sale.id, [...waiting, late]);
      await stores.expectSound(sale);
    });
  }
});
