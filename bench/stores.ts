/** PostgreSQL and Redis of a run, set up as for production: what was committed is on disk, nothing is evicted. */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { Redis } from "ioredis";
import pg from "pg";
import { applyMigrations } from "../src/db/migrate.js";
import { type EmbeddedPostgres, startPostgres } from "../src/embedded/postgres.js";
import { type EmbeddedRedis, startRedis } from "../src/embedded/redis.js";
import type { RunDir } from "./run-dir.js";

/** What stands in the report: larger than the defaults of 1996, far smaller than a machine of its own would have. */
export const POSTGRES_SETTINGS = { shared_buffers: "256MB", max_wal_size: "2GB", checkpoint_timeout: "15min" };

const TEMPLATE = "sluice_template";

/** Stores that nobody has used before. */
export interface FreshStores {
  readonly databaseUrl: string;
  readonly redisUrl: string;
  readonly postgresPid: number;
  readonly redisPid: number;
  /** Ends Redis; the database is dropped when the next ones are made. */
  close(): Promise<void>;
}

export interface Stores {
  /** of the servers, once they were started */
  versions(): { readonly postgres: string; readonly redis: string };
  /** A migrated database and an empty Redis for one contender in one round. */
  fresh(): Promise<FreshStores>;
  stop(): Promise<void>;
}

export async function startStores(runDir: RunDir): Promise<Stores> {
  const postgres = await startPostgres({
    dataDir: join(runDir.path, "stores"),
    extraArgs: Object.entries(POSTGRES_SETTINGS).flatMap(([name, value]) => ["-c", `${name}=${value}`]),
    onSpawn: runDir.endWithRun,
  });
  await query(postgres.url, `CREATE DATABASE ${TEMPLATE}`);
  await applyMigrations({ databaseUrl: urlOf(postgres, TEMPLATE) });
  const [about] = await query<{ server_version: string }>(postgres.url, "SHOW server_version");
  let redis: EmbeddedRedis | null = null;
  let redisVersion = "unknown";
  let made = 0;
  const redisDir = () => join(runDir.path, `redis-${made}`);

  const endRedis = async () => {
    // What is in it is nobody's any more.
    await redis?.kill();
    redis = null;
    rmSync(redisDir(), { recursive: true, force: true });
  };

  return {
    versions: () => ({ postgres: about?.server_version ?? "unknown", redis: redisVersion }),
    async fresh() {
      await endRedis();
      if (made > 0) await query(postgres.url, `DROP DATABASE IF EXISTS bench_${made} WITH (FORCE)`);
      made += 1;
      await query(postgres.url, `CREATE DATABASE bench_${made} TEMPLATE ${TEMPLATE}`);
      // So that nobody pays for what the one before him has left to be written.
      await query(postgres.url, "CHECKPOINT");
      redis = await startRedis({ dataDir: redisDir(), onSpawn: runDir.endWithRun });
      redisVersion = await versionOf(redis);
      return {
        databaseUrl: urlOf(postgres, `bench_${made}`),
        redisUrl: redis.url,
        postgresPid: postgres.pid,
        redisPid: redis.pid,
        close: endRedis,
      };
    },
    async stop() {
      await endRedis();
      await postgres.stop("immediate");
    },
  };
}

/** Runs one statement on a connection of its own and returns the rows. */
export async function query<Row extends pg.QueryResultRow = pg.QueryResultRow>(
  url: string,
  sql: string,
  values: unknown[] = [],
): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Row>(sql, values)).rows;
  } finally {
    await client.end();
  }
}

async function versionOf({ url }: EmbeddedRedis): Promise<string> {
  const client = new Redis(url);
  const info = await client.info("server").finally(() => client.disconnect());
  return /^redis_version:(\S+)/m.exec(info)?.[1] ?? "unknown";
}

function urlOf(postgres: EmbeddedPostgres, database: string): string {
  const url = new URL(postgres.url);
  url.pathname = database;
  return url.href;
}
