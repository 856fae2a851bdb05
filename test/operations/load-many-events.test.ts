import { beforeAll, expect, it } from "vitest";
import { loadSale } from "../../src/operations/load.js";
import { relay } from "../../src/operations/relay.js";
import type { Resources } from "../../src/resources.js";
import { ask, openProcess, openSale, remaining, type Stores, startStores, type TestSale } from "./support.js";

let stores: Stores;
let sluice: Resources;

beforeAll(async () => {
  stores = await startStores();
  sluice = await openProcess(stores);
});

/** Orders that have expired while Redis was away, as the expirer leaves them: each with an event that nobody has carried. */
async function expireUntold(sale: TestSale, count: number): Promise<void> {
  await stores.sql(
    `WITH r AS (
       INSERT INTO requests ("saleId", "requestId", "buyerId", "itemId", quantity, epoch, seq, "acceptedAt", "dueAt",
                             "queuedEpoch", outcome, "decidedAt")
       SELECT s.id, gen_random_uuid(), 'buyer-' || n, $2, 1, s.epoch, s.epoch * 1000000 + n, now(), now(), s.epoch,
              'ORDERED', now()
       FROM sales s, generate_series(1, $3::int) n WHERE s.id = $1
       RETURNING "requestId", "buyerId"
     ), o AS (
       INSERT INTO orders ("saleId", "requestId", "buyerId", "itemId", quantity, "totalMinor", currency, "payBy", status, reason)
       SELECT $1, "requestId", "buyerId", $2, 1, 2500, 'EUR', now(), 'EXPIRED', 'PAYMENT_EXPIRED' FROM r
     ), m AS (
       INSERT INTO stock_movements ("saleId", "itemId", "requestId", kind, quantity)
       SELECT $1, $2, "requestId", kind::"MovementKind", 1 FROM r, unnest(ARRAY['LOCK', 'RELEASE']) kind
     )
     INSERT INTO request_events ("saleId", "requestId", epoch, "fromStage", "toStage", reason, units)
     SELECT $1, "requestId", 1, 'ORDERED', 'EXPIRED', 'PAYMENT_EXPIRED', 1 FROM r`,
    [sale.id, sale.itemId, count],
  );
}

it("a sale is loaded however many events are not applied: each is absorbed, and given back once", async () => {
  const count = 5_000;
  const sale = await openSale(sluice, { initial: count });
  await expireUntold(sale, count);
  await stores.redis.flushAll();
  expect(await loadSale(sluice, sale.id, { reason: "not_loaded", mendsEpoch: null })).toEqual({
    kind: "loaded",
    epoch: 2,
  });
  // The load marks none: there may be more than can be marked in the time that a statement has.
  expect(await marked(sale)).toEqual({ left: count, absorbed: 0 });
  expect(await remaining(stores, sale)).toBe(count);
  await stores.expectSound(sale);
  expect((await ask(sluice, sale, "buyer-1")).kind).toBe("queued");
  await relay(sluice);
  expect(await marked(sale)).toEqual({ left: 0, absorbed: count });
  expect(await remaining(stores, sale)).toBe(count - 1);
});

async function marked(sale: TestSale) {
  const [events] = await stores.sql(
    `SELECT count(*) FILTER (WHERE "appliedAt" IS NULL)::int AS left, count(*) FILTER (WHERE absorbed)::int AS absorbed
     FROM request_events WHERE "saleId" = $1`,
    [sale.id],
  );
  return events;
}
