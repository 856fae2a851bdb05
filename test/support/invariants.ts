import { connectDatabase } from "../../src/db/client.js";
import type { Offender } from "../../src/db/offenders.js";
import { SECOND } from "../../src/domain/time.js";
import { checkSale } from "../../src/operations/check-sale.js";
import { connectRedis } from "../../src/redis/link.js";
import { waitFor } from "./wait.js";

/** What the two stores say of one sale, each breach in words. Empty where S, U, C and T hold. */
export async function findBreaches(databaseUrl: string, redisUrl: string, saleId: string): Promise<string[]> {
  const stores = openStores(databaseUrl, redisUrl);
  try {
    return await stores.findBreaches(saleId);
  } finally {
    await stores.close();
  }
}

/** Waits until everything accepted is decided and told to Redis, then checks S, U, C and T. */
export async function settleAndCheck(
  databaseUrl: string,
  redisUrl: string,
  saleId: string,
  timeoutMs = 60_000,
): Promise<void> {
  const stores = openStores(databaseUrl, redisUrl);
  try {
    await waitFor(
      async () => {
        const breaches = await stores.findBreaches(saleId);
        if (breaches.length > 0) throw new Error(breaches.join("; "));
        return true;
      },
      { what: "S, U, C and T to hold", timeoutMs },
    );
  } finally {
    await stores.close();
  }
}

/** The stores of a test, which may be away just now: that is found out when they are asked. */
function openStores(databaseUrl: string, redisUrl: string) {
  const onError = () => {};
  const reads = connectDatabase({
    url: databaseUrl,
    name: "invariants",
    pool: 1,
    waitMs: 10 * SECOND,
    statementMs: 10 * SECOND,
    lockMs: 10 * SECOND,
    idleInTransactionMs: 10 * SECOND,
    onError,
  });
  const redis = connectRedis({ url: redisUrl, name: "invariants", commandTimeoutMs: 10 * SECOND, onError });
  return {
    async findBreaches(saleId: string): Promise<string[]> {
      await redis.whenUsable(10 * SECOND);
      const { findings, uncompared } = await checkSale({ reads, redis }, saleId, 0);
      const breaches = findings.map(
        ({ invariant, what, count, shown }) => `${invariant}: ${what}: ${count} (${shown.map(inWords).join(", ")})`,
      );
      return uncompared ? [...breaches, `C: can't be told, ${uncompared}`] : breaches;
    },
    async close(): Promise<void> {
      await Promise.all([reads.$disconnect(), redis.close()]);
    },
  };
}

function inWords({ id, expected, actual }: Offender): string {
  return `${id} ${actual} instead of ${expected}`;
}
