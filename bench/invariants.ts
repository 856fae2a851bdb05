import { connectDatabase, type Database } from "../src/db/client.js";
import { findBuyersAboveTheLimit, findBuyersWithSeveralOrders, inSnapshot } from "../src/db/invariants.js";
import type { Offenders } from "../src/db/offenders.js";
import {
  findItemsUnlikeTheirMovements,
  findItemsUnlikeTheirOrders,
  findUnbalancedItems,
} from "../src/db/stock-invariants.js";
import { checkSale } from "../src/operations/check-sale.js";
import { connectRedis } from "../src/redis/link.js";
import { sleep } from "./wait.js";

/** What a contender promises: Sluice all of it; the others write no requests, so that C and T can't be asked of them. */
export type Promised = "S U C T" | "S U";

const PATIENT_MS = 120_000;
/** How long what is on its way between the stores may take to arrive. */
const SETTLE_MS = 60_000;

/** Asks the database, and where C is promised Redis too, what is broken, each breach in words. Empty where all holds. */
export async function findBreaches(
  stores: { readonly databaseUrl: string; readonly redisUrl: string },
  saleId: string,
  promised: Promised,
): Promise<string[]> {
  const database = openDatabase(stores.databaseUrl);
  try {
    if (promised === "S U") return await findInDatabase(database, saleId);
    return await findInBoth(database, stores.redisUrl, saleId);
  } finally {
    await database.$disconnect();
  }
}

/** A patient connection: what it asks reads whole sales. */
export function openDatabase(url: string): Database {
  return connectDatabase({
    url,
    name: "bench",
    pool: 1,
    waitMs: PATIENT_MS,
    statementMs: PATIENT_MS,
    lockMs: PATIENT_MS,
    idleInTransactionMs: PATIENT_MS,
    onError: () => {},
  });
}

async function findInDatabase(database: Database, saleId: string): Promise<string[]> {
  return inSnapshot(database, async (tx) => [
    ...inWords("S: units of an item, over its columns", await findUnbalancedItems(tx, saleId)),
    ...inWords("S: units of an item, by its orders", await findItemsUnlikeTheirOrders(tx, saleId)),
    ...inWords("S: units of an item, by its movements", await findItemsUnlikeTheirMovements(tx, saleId)),
    ...inWords("U: valid orders of a buyer", await findBuyersWithSeveralOrders(tx, saleId)),
    ...inWords("U: units of a buyer", await findBuyersAboveTheLimit(tx, saleId)),
  ]);
}

async function findInBoth(database: Database, redisUrl: string, saleId: string): Promise<string[]> {
  const redis = connectRedis({ url: redisUrl, name: "bench", commandTimeoutMs: PATIENT_MS, onError: () => {} });
  try {
    await redis.whenUsable(PATIENT_MS);
    const deadline = performance.now() + SETTLE_MS;
    for (;;) {
      // Nothing may be waiting any more: a bound of zero.
      const { findings, uncompared } = await checkSale({ reads: database, redis }, saleId, 0);
      const breaches = findings.flatMap(({ invariant, what, ...offenders }) =>
        inWords(`${invariant}: ${what}`, offenders),
      );
      if (uncompared) breaches.push(`C: can't be told, ${uncompared}`);
      if (breaches.length === 0 || performance.now() > deadline) return breaches;
      await sleep(100);
    }
  } finally {
    await redis.close();
  }
}

/** Without the offenders' ids, which can be buyers'. */
function inWords(what: string, { count, shown: [first] }: Offenders): string[] {
  if (count === 0 || !first) return [];
  return [`${what}: ${count} wrong, the first has ${first.actual} instead of ${first.expected}`];
}
