import { findPendingMigrations } from "./db/migrate.js";
import { findUnfitness } from "./redis/fitness.js";
import type { Resources } from "./resources.js";

const WAIT_MS = 1_000;

/**
 * Why a process must not run on the stores that it was given, in one line with the remedy, or null. A store that is away
 * is no reason: the process starts all the same, is not ready, and goes on by itself when the store is back.
 */
export async function findObstacle(resources: Resources): Promise<string | null> {
  const [unfit, pending] = await Promise.all([
    findUnfitness(resources.redis, WAIT_MS),
    findPendingMigrations(resources.config.DATABASE_URL, WAIT_MS).catch(() => []),
  ]);
  if (unfit) return unfit;
  if (pending.length === 0) return null;
  return `The database is not up to date: it lacks ${pending.join(", ")}. Run: npm run migrate`;
}
