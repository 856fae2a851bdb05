import { cpSync, rmSync } from "node:fs";
import { join } from "node:path";
import { Redis } from "ioredis";
import { type EmbeddedRedis, startRedis } from "../../src/embedded/redis.js";
import { atEndOfFile, endWithRun, makeTempDir } from "./test-file.js";

export type TestRedisOptions = {
  /** @defaultValue true */
  appendonly?: boolean;
  /** More arguments for redis-server, for example `["--maxmemory", "64mb"]`. */
  extraArgs?: string[];
};

export type RestartOptions = {
  /** Comes back with nothing in it. */
  wiped?: boolean;
  /** Comes back as it was at this `backup()`: set back, like a replica that was behind. */
  from?: string;
};

/** A private Redis that can be hurt. Its URL stays the same over restarts. */
export type TestRedis = {
  readonly url: string;
  readonly port: number;
  /** Another one after each restart. */
  readonly pid: number;
  /**
   * SIGKILL. What it has answered is mostly kept: the AOF is written before the reply, unless the disk is at syncing what came
   * before. Then up to two seconds of answers are lost, as Redis has it with `appendfsync everysec`.
   */
  kill(): Promise<void>;
  /** SIGSTOP: connections stay open and nothing is answered. */
  freeze(): void;
  thaw(): void;
  /** In an orderly way. */
  stop(): Promise<void>;
  /** Stops it if it runs, and starts it on the same port. */
  restart(options?: RestartOptions): Promise<void>;
  /** Copies its files as they are now, for `restart({ from })`. */
  backup(): string;
  flushAll(): Promise<void>;
};

/** Starts a private redis-server for this test file (AOF, noeviction), which ends with it. */
export async function startTestRedis(options: TestRedisOptions = {}): Promise<TestRedis> {
  const dataDir = makeTempDir("redis");
  const files = join(dataDir, "redis");
  const start = (port?: number) =>
    startRedis({ dataDir, ...options, ...(port !== undefined && { port }), onSpawn: endWithRun });
  let server: EmbeddedRedis = await start();
  let running = true;

  const stop = async () => {
    if (!running) return;
    running = false;
    // A frozen process takes no orderly end.
    process.kill(server.pid, "SIGCONT");
    await server.stop();
  };
  atEndOfFile(stop);

  return {
    url: server.url,
    port: server.port,
    get pid() {
      return server.pid;
    },
    kill: async () => {
      running = false;
      await server.kill();
    },
    freeze: () => process.kill(server.pid, "SIGSTOP"),
    thaw: () => process.kill(server.pid, "SIGCONT"),
    stop,
    restart: async ({ wiped, from } = {}) => {
      await stop();
      if (wiped || from) rmSync(files, { recursive: true, force: true });
      if (from) cpSync(from, files, { recursive: true });
      server = await start(server.port);
      running = true;
    },
    backup: () => {
      const copy = join(makeTempDir("redis-backup"), "redis");
      cpSync(files, copy, { recursive: true });
      return copy;
    },
    flushAll: async () => {
      const client = new Redis(server.url, { maxRetriesPerRequest: 1 });
      await client.flushall().finally(() => client.disconnect());
    },
  };
}
