/** One contender on stores that nobody has used before: what every measure does with it. */
import { createSale } from "../src/operations/create-sale.js";
import type { Entrant, Running, StartOptions } from "./entrant.js";
import { findBreaches, openDatabase } from "./invariants.js";
import { generateLoad } from "./load/generator.js";
import type { LoadPlan, LoadResult } from "./load/plan.js";
import type { ContenderName } from "./names.js";
import { cpuSecondsOf } from "./process-usage.js";
import { AUTH } from "./sluice/operate.js";
import { type FreshStores, query, type Stores } from "./stores.js";
import { until } from "./wait.js";

/** What a run has for all its trials. */
export interface Bench extends StartOptions {
  readonly stores: Stores;
  /** smaller, since everything is run once and in minutes */
  readonly quick: boolean;
  /** Those that can be tried: what has no API isn't among them. */
  readonly entrants: Readonly<Partial<Record<ContenderName, Entrant>>>;
  /** Tells how it gets on. */
  say(line: string): void;
}

export interface Target {
  readonly saleId: string;
  readonly itemId: string;
}

/** Processor seconds used so far. */
export interface CpuUse {
  readonly api: number;
  readonly worker: number;
  readonly redis: number;
  readonly postgres: number;
}

export interface Trial {
  readonly stores: FreshStores;
  readonly running: Running;
  /** Makes a sale with one item, and opens it to buyers. */
  openSale(units: number): Promise<Target>;
  /** Sends a load from a process of its own; calls back when its warm-up is over. */
  load(plan: Omit<LoadPlan, "url" | "auth">, onCounting?: () => void): Promise<LoadResult>;
  cpu(): CpuUse;
  /** Resolves when so many orders are in the database, with when that was seen, in milliseconds since 1970. */
  whenOrdered(target: Target, orders: number): Promise<number>;
  /** What is broken of what the contender promises, and what it has told its buyers otherwise than it has done. */
  findBreaches(target: Target): Promise<string[]>;
}

/** Starts a contender, hands it over, and ends it, whatever comes of it. */
export async function withTrial<Outcome>(
  bench: Bench,
  contender: ContenderName,
  options: { readonly workers: boolean },
  use: (trial: Trial) => Promise<Outcome>,
): Promise<Outcome> {
  const entrant = bench.entrants[contender];
  if (!entrant) throw new Error(`${contender} can't be tried`);
  const stores = await bench.stores.fresh();
  const running = await entrant.start(bench, stores);
  // It is for the race below, which is not on yet.
  running.died.catch(() => {});
  try {
    if (options.workers) await running.startWorkers();
    return await Promise.race([use(trialOf(bench, entrant, stores, running)), running.died]);
  } finally {
    await running.stop();
    await stores.close();
  }
}

function trialOf(bench: Bench, entrant: Entrant, stores: FreshStores, running: Running): Trial {
  return {
    stores,
    running,
    async openSale(units) {
      const target = await makeSale(stores.databaseUrl, units);
      await running.openSale(target.saleId);
      return target;
    },
    load: (plan, onCounting) => generateLoad(bench.runDir, { ...plan, url: running.url, auth: AUTH }, onCounting),
    cpu: () => ({
      api: cpuSecondsOf(running.apiPids()),
      worker: cpuSecondsOf(running.workerPids()),
      redis: cpuSecondsOf([stores.redisPid]),
      postgres: cpuSecondsOf([stores.postgresPid]),
    }),
    whenOrdered: (target, orders) => whenOrdered(stores.databaseUrl, target, orders),
    async findBreaches({ saleId }) {
      return entrant.promises === null ? [] : findBreaches(stores, saleId, entrant.promises);
    },
  };
}

/** A draft with one item, one unit a buyer, and a day to buy. */
export async function makeSale(databaseUrl: string, units: number): Promise<Target> {
  const database = openDatabase(databaseUrl);
  const hour = 60 * 60 * 1_000;
  try {
    const sale = await createSale(
      { db: database },
      {
        title: "A drop",
        opensAt: new Date(Date.now() - hour),
        closesAt: new Date(Date.now() + 24 * hour),
        maxPerBuyer: 1,
        // Nothing may expire in the middle of a measure.
        paymentWindowSeconds: 24 * 60 * 60,
        items: [{ sku: "ONE", title: "The one thing", priceMinor: 2_500, currency: "EUR", initial: units }],
      },
      "bench",
    );
    return { saleId: sale.id, itemId: (sale.items[0] as { id: string }).id };
  } finally {
    await database.$disconnect();
  }
}

const LOOK_EVERY_MS = 10;
/** So long without a single new order, nothing comes any more. */
const STANDSTILL_MS = 60_000;

/**
 * Looks at the item's row, which every contender changes in the transaction that writes an order: counting the orders
 * themselves would cost as much as writing some of them.
 */
export async function watchOrders<Answer>(
  databaseUrl: string,
  { saleId, itemId }: Target,
  look: (orders: number, atMs: number) => Answer | null,
): Promise<Answer> {
  const database = openDatabase(databaseUrl);
  let last = -1;
  let movedAt = Date.now();
  try {
    return await until(
      async () => {
        const rows = await database.$queryRaw<{ locked: number }[]>`
          SELECT locked FROM sale_items WHERE "saleId" = ${saleId} AND id = ${itemId}`;
        const orders = rows[0]?.locked ?? 0;
        if (orders !== last) movedAt = Date.now();
        last = orders;
        if (Date.now() - movedAt > STANDSTILL_MS)
          throw new Error(`T: nothing was ordered any more after ${orders} orders`);
        return look(orders, Date.now());
      },
      { what: "the orders", timeoutMs: 60 * 60_000, everyMs: LOOK_EVERY_MS },
    );
  } finally {
    await database.$disconnect();
  }
}

async function whenOrdered(databaseUrl: string, target: Target, orders: number): Promise<number> {
  const at = await watchOrders(databaseUrl, target, (seen, atMs) => (seen >= orders ? atMs : null));
  const [row] = await query<{ count: number }>(
    databaseUrl,
    'SELECT count(*)::int AS count FROM orders WHERE "saleId" = $1',
    [target.saleId],
  );
  if (row?.count !== orders)
    throw new Error(`S: ${row?.count} orders, while ${orders} buyers were told that they have one`);
  return at;
}
