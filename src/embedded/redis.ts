/** A private Redis from the `redis-server` on the PATH: one directory, one free port of 127.0.0.1, a random password. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { StartFailure } from "./failure.js";
import { findFreePort } from "./ports.js";
import { makeDataDir, readOrCreateSecret } from "./private-files.js";
import { sendSignal } from "./process-identity.js";
import {
  describeExit,
  type Exit,
  type Running,
  type ServerOptions,
  type Spawned,
  spawnDetached,
  stopWithin,
  tailOf,
} from "./spawn.js";

const START_DEADLINE_MS = 60_000; // a long append-only file has to be read
const STOP_DEADLINE_MS = 15_000;

/** How Redis is to run. */
export interface RedisOptions extends ServerOptions {
  /** @defaultValue true: synced to disk once a second */
  readonly appendonly?: boolean;
}

/** A Redis that answers. */
export interface EmbeddedRedis extends Running {
  readonly url: string;
  readonly port: number;
  /** SIGKILL. */
  kill(): Promise<void>;
}

/**
 * Starts the Redis of a data directory.
 *
 * @throws StartFailure when there is no redis-server, or it doesn't get ready
 */
export async function startRedis(options: RedisOptions): Promise<EmbeddedRedis> {
  makeDataDir(options.dataDir);
  const directory = join(options.dataDir, "redis");
  const logPath = join(options.dataDir, "logs", "redis.log");
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const password = readOrCreateSecret(options.dataDir, "redis-password");
  const deadline = Date.now() + START_DEADLINE_MS;
  for (;;) {
    const port = options.port ?? (await findFreePort());
    const spawned = await spawnServer(directory, port, password, options, logPath);
    options.onSpawn?.(spawned.pid);
    // With the name of Redis's own user: redis-cli takes an empty one for a name.
    const url = `redis://default:${password}@127.0.0.1:${port}`;
    const exit = await untilReady(url, spawned, deadline);
    if (exit === null) return running(spawned, url, port);
    // A port may be taken between asking for it and using it.
    if (!/Address already in use|Failed listening/.test(tailOf(logPath, 6)) || options.port || Date.now() > deadline) {
      throw new StartFailure(`Redis ${describeExit(exit)} while starting. From ${logPath}:\n${tailOf(logPath)}`);
    }
  }
}

async function spawnServer(
  directory: string,
  port: number,
  password: string,
  options: RedisOptions,
  logPath: string,
): Promise<Spawned> {
  const settings = {
    bind: "127.0.0.1",
    port,
    dir: directory,
    pidfile: join(directory, "redis.pid"),
    appendonly: options.appendonly === false ? "no" : "yes",
    appendfsync: "everysec",
    "maxmemory-policy": "noeviction",
    save: "",
    daemonize: "no",
  };
  const args = [
    "-",
    ...Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]),
    ...(options.extraArgs ?? []),
  ];
  try {
    // The password goes through standard input: every user of the machine can read a command line.
    return await spawnDetached({
      command: "redis-server",
      args,
      cwd: directory,
      logPath,
      input: `requirepass ${password}\n`,
    });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    throw new StartFailure(
      "There is no redis-server on the PATH. Install Redis 6.2 or newer (apt, dnf or brew), or set REDIS_URL.",
    );
  }
}

function running(spawned: Spawned, url: string, port: number): EmbeddedRedis {
  const { pid, exited } = spawned;
  return {
    url,
    port,
    pid,
    exited,
    // A hurry changes nothing: it only writes what is left of the append-only file.
    stop: () => stopWithin(spawned, "SIGTERM", STOP_DEADLINE_MS),
    kill: async () => {
      sendSignal(pid, "SIGKILL");
      await exited;
    },
  };
}

/** Null once it answers (LOADING is no answer); how the process ended when it did. */
async function untilReady(url: string, spawned: Spawned, deadline: number): Promise<Exit | null> {
  let exit: Exit | null = null;
  void spawned.exited.then((ended) => {
    exit = ended;
  });
  while (!exit) {
    if ((await pings(url)) && !exit) return null;
    if (Date.now() > deadline) {
      await stopWithin(spawned, "SIGTERM", 5_000);
      throw new StartFailure("Redis did not answer in time.");
    }
    await sleep(25);
  }
  return exit;
}

async function pings(url: string): Promise<boolean> {
  const client = new Redis(url, {
    lazyConnect: true,
    retryStrategy: null,
    enableOfflineQueue: false,
    connectTimeout: 2_000,
    commandTimeout: 2_000,
    enableReadyCheck: false,
  });
  client.on("error", () => {});
  try {
    await client.connect();
    return (await client.ping()) === "PONG";
  } catch {
    return false;
  } finally {
    client.disconnect();
  }
}
