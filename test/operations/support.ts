/** What the tests of operations share: stores of their own, processes' resources opened in here, sales made to order. */
import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { expect } from "vitest";
import { type Config, loadConfig } from "../../src/config.js";
import { readEpoch, takeFenceShared } from "../../src/db/fence.js";
import { changeOrders } from "../../src/db/order-changes.js";
import { insertPayment } from "../../src/db/payments.js";
import { inTransaction } from "../../src/db/transaction.js";
import { orderIdOf } from "../../src/domain/ids.js";
import { HOUR } from "../../src/domain/time.js";
import { changeSaleState } from "../../src/operations/change-sale-state.js";
import { createSale } from "../../src/operations/create-sale.js";
import { createExpirer } from "../../src/operations/expire.js";
import { type ReserveOutcome, reserve } from "../../src/operations/reserve.js";
import { writeOrders } from "../../src/operations/write-orders.js";
import { callReserve } from "../../src/redis/reserve.js";
import { openResources, type Resources } from "../../src/resources.js";
import { createTestDatabase } from "../support/database.js";
import { findBreaches } from "../support/invariants.js";
import { startTestRedis, type TestRedis } from "../support/redis.js";
import { query } from "../support/sql.js";
import { atEndOfFile } from "../support/test-file.js";
import { waitFor } from "../support/wait.js";

export interface Stores {
  readonly redis: TestRedis;
  readonly databaseUrl: string;
  /** For looking and breaking. */
  readonly client: Redis;
  sql<Row extends object = Record<string, unknown>>(text: string, values?: unknown[]): Promise<Row[]>;
  /** S, U, C and T hold for the sale, nothing being between the two stores. */
  expectSound(sale: TestSale): Promise<void>;
}

/** A PostgreSQL database and a Redis of this file's own. */
export async function startStores(): Promise<Stores> {
  const [redis, database] = await Promise.all([startTestRedis(), createTestDatabase()]);
  const client = new Redis(redis.url);
  client.on("error", () => {});
  atEndOfFile(() => client.disconnect());
  return {
    redis,
    databaseUrl: database.url,
    client,
    sql: <Row extends object>(text: string, values?: unknown[]) =>
      query<Row & Record<string, unknown>>(database.url, text, values),
    async expectSound(sale) {
      expect(await findBreaches(database.url, redis.url, sale.id)).toEqual([]);
    },
  };
}

export interface ProcessOptions {
  readonly tuning?: Record<string, unknown>;
  /** Another way to a store, for example through a proxy. */
  readonly databaseUrl?: string;
  readonly redisUrl?: string;
}

type StoreUrls = Pick<Stores, "databaseUrl" | "redis">;

/** The environment of a process that works on these stores. */
export function environmentOf(stores: StoreUrls, options: ProcessOptions = {}): Record<string, string> {
  return {
    NODE_ENV: "test",
    DATABASE_URL: options.databaseUrl ?? stores.databaseUrl,
    REDIS_URL: options.redisUrl ?? stores.redis.url,
    JWT_SECRET: "a secret of the tests, longer than 32 characters",
    SLUICE_DATA_DIR: "/nonexistent",
    SLUICE_TUNING: JSON.stringify(options.tuning ?? {}),
    LOG_LEVEL: "silent",
  };
}

/** What one process holds open, in this one. */
export async function openProcess(stores: StoreUrls, options: ProcessOptions = {}): Promise<Resources> {
  const config: Config = loadConfig(environmentOf(stores, options));
  const resources = openResources(config, "api");
  atEndOfFile(() => resources.close(1_000));
  await resources.redis.whenUsable(5_000);
  await waitFor(() => resources.databaseHealth.isUp(), { what: "the database to answer" });
  return resources;
}

export interface TestSale {
  readonly id: string;
  readonly itemId: string;
}

export interface SaleOptions {
  readonly initial?: number;
  readonly maxPerBuyer?: number;
}

/** A sale of one item, open and loaded. */
export async function openSale(resources: Resources, options: SaleOptions = {}): Promise<TestSale> {
  const sale = await makeDraft(resources, options);
  await changeSaleState(resources, { saleId: sale.id, action: "open", actor: "olga" });
  return sale;
}

export async function makeDraft(resources: Resources, options: SaleOptions = {}): Promise<TestSale> {
  const { id, items } = await createSale(
    resources,
    {
      title: "A drop",
      opensAt: new Date(Date.now() - HOUR),
      closesAt: new Date(Date.now() + HOUR),
      maxPerBuyer: options.maxPerBuyer ?? 5,
      paymentWindowSeconds: 900,
      items: [{ sku: "SHIRT", title: "A shirt", priceMinor: 2_500, currency: "EUR", initial: options.initial ?? 100 }],
    },
    "olga",
  );
  return { id, itemId: items[0]?.id ?? "" };
}

export interface Wish {
  readonly requestId?: string;
  readonly quantity?: number;
}

/** One call of reserve, by a buyer of that name. */
export function ask(resources: Resources, sale: TestSale, buyerId: string, wish: Wish = {}): Promise<ReserveOutcome> {
  const { requestId = randomUUID(), quantity = 1 } = wish;
  return reserve(resources, { saleId: sale.id, itemId: sale.itemId, buyerId, requestId, quantity });
}

/** Reserves, and fails the test where the answer isn't QUEUED. Gives the requestId once its job is in the queue. */
export async function queueOne(
  resources: Resources,
  sale: TestSale,
  buyerId: string,
  wish: Wish = {},
): Promise<string> {
  const requestId = wish.requestId ?? randomUUID();
  const outcome = await ask(resources, sale, buyerId, { ...wish, requestId });
  expect(outcome.kind).toBe("queued");
  await resources.journal.drained();
  return requestId;
}

/** As many buyers, each with one request, in the order in which they were accepted. */
export async function queueMany(resources: Resources, sale: TestSale, count: number, name = "b"): Promise<string[]> {
  const requestIds = Array.from({ length: count }, () => randomUUID());
  for (const [at, requestId] of requestIds.entries()) {
    expect((await ask(resources, sale, `${name}-${at}`, { requestId })).kind).toBe("queued");
  }
  await resources.journal.drained();
  return requestIds;
}

/** A buyer with an order that waits to be paid. */
export async function order(resources: Resources, sale: TestSale, buyerId: string, wish: Wish = {}): Promise<string> {
  const requestId = await queueOne(resources, sale, buyerId, wish);
  const [result] = await writeOrders(resources, sale.id, [requestId]);
  expect(result).toMatchObject({ kind: "decided", decision: { outcome: "ORDERED" } });
  return requestId;
}

/** Puts accepted requests into the database as if Redis had known of them: by hand, in the sale's present epoch. */
export async function journalByHand(
  stores: Stores,
  sale: TestSale,
  buyerId: string,
  options: { quantity?: number; seq?: number } = {},
): Promise<string> {
  const requestId = randomUUID();
  await stores.sql(
    `INSERT INTO requests ("saleId", "requestId", "buyerId", "itemId", quantity, epoch, seq, "acceptedAt", "dueAt", "queuedEpoch")
     SELECT id, $2, $3, $4, $5, epoch, $6, now(), now() + interval '30 seconds', epoch FROM sales WHERE id = $1`,
    [sale.id, requestId, buyerId, sale.itemId, options.quantity ?? 1, options.seq ?? 999_999_999],
  );
  return requestId;
}

/** Cancels or pays an order in the database, and dies before Redis could be told: its event is left to the relay. */
export async function changeUntold(
  resources: Resources,
  sale: TestSale,
  requestId: string,
  change: "cancel" | "pay" = "cancel",
): Promise<void> {
  const how =
    change === "cancel" ? { reason: "CANCELLED_BY_BUYER" as const } : { paymentRef: `pay_${requestId}` as const };
  const changed = await inTransaction(resources.db, async (tx) => {
    await takeFenceShared(tx, sale.id);
    const epoch = (await readEpoch(tx, sale.id)) ?? 0;
    const input = { change, requestIds: [requestId], condition: { none: true } as const, ...how, epoch };
    const [changed] = await changeOrders(tx, sale.id, input);
    const { paymentRef = null, totalMinor: amountMinor = 0 } = changed?.order ?? {};
    const named = { orderId: orderIdOf(sale.id, requestId), saleId: sale.id, requestId };
    if (paymentRef) await insertPayment(tx, { ...named, paymentRef, amountMinor, outcome: "PAID" });
    return changed;
  });
  expect(changed).toBeDefined();
}

/** Ends all orders that are due, but for those of sales that can't be seen to; answers with how many those were. */
export async function expireOrders(resources: Resources): Promise<number> {
  const expirer = createExpirer(resources);
  let expired = 0;
  for (;;) {
    const some = (await expirer.turn()) + (await expirer.settled());
    if (some === 0) return expired;
    expired += some;
  }
}

/** Lets the payment window of these orders pass; of all unpaid ones where none are named. */
export async function letPass(stores: Stores, sale: TestSale, requestIds?: readonly string[]): Promise<void> {
  await stores.sql(
    `UPDATE orders SET "payBy" = now() - interval '1 second'
     WHERE "saleId" = $1 AND status = 'PENDING_PAYMENT' AND ($2::uuid[] IS NULL OR "requestId" = ANY($2::uuid[]))`,
    [sale.id, requestIds ?? null],
  );
}

/** Decides an undecided request FAILED and gives its units back through an event, as compensation does. */
export async function compensate(resources: Resources, sale: TestSale, requestId: string): Promise<boolean> {
  return inTransaction(resources.db, async (tx) => {
    await takeFenceShared(tx, sale.id);
    const epoch = (await readEpoch(tx, sale.id)) ?? 0;
    const [decided] = await tx.$queryRaw<{ quantity: number }[]>`
      UPDATE requests SET outcome = 'FAILED', reason = 'PROCESSING_FAILED', "decidedAt" = now()
      WHERE "saleId" = ${sale.id} AND "requestId" = ${requestId}::uuid AND outcome IS NULL RETURNING quantity`;
    if (!decided) return false;
    await tx.$executeRaw`
      INSERT INTO request_events ("saleId", "requestId", epoch, "fromStage", "toStage", reason, units)
      VALUES (${sale.id}, ${requestId}::uuid, ${epoch}, 'QUEUED', 'FAILED', 'PROCESSING_FAILED', ${decided.quantity})`;
    return true;
  });
}

/** What Redis holds of a request. */
export function inRedis(stores: Stores, sale: TestSale, requestId: string): Promise<Record<string, string>> {
  return stores.client.hgetall(`sluice:{${sale.id}}:r:${requestId}`);
}

/** The units that Redis offers. */
export async function remaining(stores: Stores, sale: TestSale): Promise<number> {
  return Number(await stores.client.hget(`sluice:{${sale.id}}:stock`, sale.itemId));
}

/** A field of the sale in Redis. */
export function saleField(stores: Stores, sale: TestSale, field: string): Promise<string | null> {
  return stores.client.hget(`sluice:{${sale.id}}:sale`, field);
}

export async function epochInDatabase(stores: Stores, sale: TestSale): Promise<number> {
  const [row] = await stores.sql<{ epoch: number }>("SELECT epoch FROM sales WHERE id = $1", [sale.id]);
  return row?.epoch ?? -1;
}

/** Has Redis accept a request that nobody journals: what a process leaves that dies right behind reserve.lua. */
export async function acceptOnly(
  resources: Resources,
  sale: TestSale,
  buyerId: string,
  requestId: string = randomUUID(),
) {
  const row = { requestId, buyerId, itemId: sale.itemId, quantity: 1 };
  const call = { ...row, saleId: sale.id, notAfterMs: resources.redis.clock.now() + 10_000, accept: true };
  const reply = await callReserve(resources.redis, call);
  if (reply.kind !== "accepted") throw new Error(`not accepted: ${reply.kind}`);
  return { ...row, epoch: reply.epoch, seq: reply.seq, acceptedAt: reply.at };
}
