import { connectDatabase } from "../../db/client.js";
import { SECOND } from "../../domain/time.js";
import type { CheckSaleDeps } from "../../operations/check-sale.js";
import { connectRedis } from "../../redis/link.js";
import { DemoFailure } from "./failure.js";
import type { RunningSluice } from "./running-sluice.js";

/** The two stores of a running Sluice, which the verdict is read from. */
export interface Stores extends CheckSaleDeps {
  close(): Promise<void>;
}

/** @throws DemoFailure where one of them doesn't answer */
export async function openStores({ databaseUrl, redisUrl }: RunningSluice): Promise<Stores> {
  const reads = connectDatabase({
    url: databaseUrl,
    name: "demo",
    pool: 3,
    waitMs: 5 * SECOND,
    statementMs: 10 * SECOND,
    lockMs: SECOND,
    idleInTransactionMs: 10 * SECOND,
    onError: () => {},
  });
  const redis = connectRedis({ url: redisUrl, name: "demo", commandTimeoutMs: 5 * SECOND, onError: () => {} });
  const close = async () => {
    await Promise.allSettled([reads.$disconnect(), redis.close()]);
  };
  try {
    await Promise.all([redis.whenUsable(5 * SECOND), reads.$connect()]);
  } catch (error) {
    await close();
    throw new DemoFailure(`The databases of the running Sluice don't answer: ${(error as Error).message}`);
  }
  return { reads, redis, close };
}
