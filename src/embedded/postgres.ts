/** A private PostgreSQL: one directory, one free port of 127.0.0.1, a random password, no other way in. */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { messageOf, StartFailure } from "./failure.js";
import { systemPath } from "./os-user.js";
import { findFreePort } from "./ports.js";
import { type Cluster, prepareCluster } from "./postgres-cluster.js";
import { makeDataDir, readIfThere } from "./private-files.js";
import { sendSignal, workingDirectoryOf } from "./process-identity.js";
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

const START_DEADLINE_MS = 60_000; // a crash recovery has to fit in
const STOP_DEADLINE_MS = 30_000; // a fast shutdown writes a checkpoint

/** How the database is to run. */
export interface PostgresOptions extends ServerOptions {
  /**
   * false for tests: commits are then safe from a killed process, though not from a power cut.
   * @defaultValue true
   */
  readonly fsync?: boolean;
}

/** A PostgreSQL that accepts connections. */
export interface EmbeddedPostgres extends Running {
  /** For the superuser `sluice`, in the database `sluice`. */
  readonly url: string;
  readonly port: number;
  /** fast (also what `Running.stop` does): open transactions are rolled back; immediate: as after a crash. */
  stop(how?: "fast" | "immediate" | AbortSignal): Promise<void>;
  /** SIGKILL. Its own children notice and go within moments. */
  kill(): Promise<void>;
}

/**
 * Starts the database of a data directory, making it at first use. A crash before is recovered from.
 *
 * @throws StartFailure when it runs already, or doesn't get ready
 */
export async function startPostgres(options: PostgresOptions): Promise<EmbeddedPostgres> {
  makeDataDir(options.dataDir);
  const cluster = prepareCluster(options.dataDir, options.fsync ?? true);
  const logPath = join(options.dataDir, "logs", "postgres.log");
  const deadline = Date.now() + START_DEADLINE_MS;
  for (;;) {
    removeStalePidFile(cluster.directory);
    const port = options.port ?? (await findFreePort());
    const spawned = await spawnServer(cluster, port, options, logPath);
    options.onSpawn?.(spawned.pid);
    const url = (database: string) => `postgresql://sluice:${cluster.password}@127.0.0.1:${port}/${database}`;
    const exit = await untilReady(url("postgres"), spawned, deadline);
    if (exit === null) {
      await makeDatabase(url("postgres"));
      return running(spawned, url("sluice"), port);
    }
    const reason = tailOf(logPath, 6);
    // The last server's children may outlive it by a moment and hold its memory.
    const held = reason.includes("pre-existing shared memory block");
    // A free port may be taken between asking for it and using it.
    const taken = options.port === undefined && reason.includes("could not bind");
    if (!(held || taken) || Date.now() > deadline) {
      throw new StartFailure(`PostgreSQL ${describeExit(exit)} while starting. From ${logPath}:\n${tailOf(logPath)}`);
    }
    await sleep(200);
  }
}

function spawnServer(cluster: Cluster, port: number, options: PostgresOptions, logPath: string): Promise<Spawned> {
  const settings = {
    listen_addresses: "127.0.0.1",
    port,
    unix_socket_directories: "",
    max_connections: 200,
    timezone: "UTC",
    log_timezone: "UTC",
    // synchronous_commit stays on: what was committed must survive a killed server in tests as well.
    ...(options.fsync === false && { fsync: "off", full_page_writes: "off" }),
  };
  const plan = cluster.launcher.plan(cluster.program, [
    "-D",
    cluster.directory,
    ...Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]),
    ...(options.extraArgs ?? []),
  ]);
  // A clean environment: PGOPTIONS and its like of the caller's shell are not meant for this server.
  return spawnDetached({ ...plan, cwd: cluster.directory, logPath, env: { PATH: systemPath, LC_ALL: "C", TZ: "UTC" } });
}

function running(spawned: Spawned, url: string, port: number): EmbeddedPostgres {
  const { pid, exited } = spawned;
  return {
    url,
    port,
    pid,
    exited,
    // A hurry changes nothing: fast is already as fast as is clean.
    stop: (how) => stopWithin(spawned, how === "immediate" ? "SIGQUIT" : "SIGINT", STOP_DEADLINE_MS),
    kill: async () => {
      sendSignal(pid, "SIGKILL");
      await exited;
    },
  };
}

/** Null once a connection works; how the process ended when it did. */
async function untilReady(url: string, spawned: Spawned, deadline: number): Promise<Exit | null> {
  let exit: Exit | null = null;
  void spawned.exited.then((ended) => {
    exit = ended;
  });
  for (;;) {
    if (exit) return exit;
    try {
      await connected(url, async () => {});
      return exit;
    } catch (error) {
      const refused = (error as { code?: string }).code === "28P01";
      // Perhaps another server has the port and refused us; then ours is about to end.
      if (refused) await Promise.race([spawned.exited, sleep(1_000)]);
      if (exit) return exit;
      if (refused || Date.now() > deadline) {
        await stopWithin(spawned, "SIGINT", 5_000);
        throw new StartFailure(
          refused
            ? "The database's password isn't the one in the data directory any more. To begin anew: npm run reset"
            : `PostgreSQL did not accept connections in time: ${messageOf(error)}`,
        );
      }
      await sleep(25);
    }
  }
}

async function makeDatabase(url: string): Promise<void> {
  await connected(url, async (client) => {
    const { rowCount } = await client.query("SELECT 1 FROM pg_database WHERE datname = 'sluice'");
    if (!rowCount) await client.query("CREATE DATABASE sluice");
  });
}

async function connected(url: string, use: (client: pg.Client) => Promise<void>): Promise<void> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2_000 });
  client.on("error", () => {}); // it also rejects what is waited for
  try {
    await client.connect();
    await use(client);
  } finally {
    await client.end().catch(() => {});
  }
}

/** A pid of this file that meanwhile names another process of the same user would keep PostgreSQL from starting. */
function removeStalePidFile(directory: string): void {
  const path = join(directory, "postmaster.pid");
  const pid = Number(readIfThere(path)?.split("\n")[0]);
  if (!pid) return;
  if (workingDirectoryOf(pid) === directory)
    throw new StartFailure(`A PostgreSQL (process ${pid}) already runs on ${directory}.`);
  rmSync(path, { force: true });
}
