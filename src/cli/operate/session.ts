import { type Config, ConfigError } from "../../config.js";
import { isDatabaseUnavailable } from "../../db/errors.js";
import { probeDatabase } from "../../db/probe.js";
import { SECOND } from "../../domain/time.js";
import { findObstacle } from "../../preflight.js";
import { openResources, type Resources } from "../../resources.js";
import type { Report } from "./report.js";

/** The stores that a command can't do without. What a change has to tell a Redis that is away, it is told later. */
export type Needs = "database" | "both" | "either";

/** What a command does with the stores. `say` is a line for people while it runs. */
export type Work = (sluice: Resources, say: (line: string) => void) => Promise<Report>;

/** Runs a command's work. */
export type Run = (needs: Needs, work: Work) => Promise<void>;

const WAIT_MS = 2 * SECOND;

/**
 * Opens the stores, does the work, and closes them. It goes around the API, so that it works
 * while that is down.
 *
 * @throws ConfigError; within seconds RedisUnavailableError or a database error where a needed store is away; whatever `work` throws
 */
export async function inSession(
  config: Config,
  needs: Needs,
  say: (line: string) => void,
  work: Work,
): Promise<Report> {
  const { tuning } = config;
  // Standard output is the report's, and a command needs few connections.
  const quiet = {
    ...config,
    LOG_LEVEL: "silent",
    tuning: { ...tuning, pools: { sale: 2, orders: 2, reads: 2 } },
  } as const;
  const sluice = openResources(quiet, "command");
  try {
    await meetStores(sluice, needs);
    return await work(sluice, say);
  } finally {
    await sluice.close(WAIT_MS);
  }
}

async function meetStores(sluice: Resources, needs: Needs): Promise<void> {
  const whyAway = (error: unknown) => error;
  const meeting = sluice.redis.whenUsable(WAIT_MS).then(() => null, whyAway);
  const obstacles = findObstacle(sluice);
  const database = await probeDatabase(sluice.db).then(() => null, whyAway);
  if (needs !== "either" && isDatabaseUnavailable(database)) throw database;
  const [redis, obstacle] = await Promise.all([meeting, obstacles]);
  // Before what the probe said: a database without our tables lacks all migrations.
  if (obstacle) throw new ConfigError(obstacle);
  if (database && (needs !== "either" || redis)) throw database;
  if (redis && needs === "both") throw redis;
}
