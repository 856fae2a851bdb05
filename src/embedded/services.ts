/** What `npm start` keeps running, in the terms of the supervisor. */
import { join } from "node:path";
import type { StartSettings } from "../config.js";
import { followLog } from "./log-follower.js";
import { startNodeChild } from "./node-child.js";
import { type ProcessName, recordProcess } from "./orphans.js";
import { startPostgres } from "./postgres.js";
import { startRedis } from "./redis.js";
import { type Supervised, supervise } from "./supervisor.js";

type Say = (line: string) => void;

/** A server and where it is to be found, the same over restarts. */
export interface SupervisedServer {
  readonly url: string;
  readonly supervised: Supervised;
}

/** Starts the private PostgreSQL or Redis of a data directory and keeps it running, on one and the same port. */
export async function superviseServer(
  name: "postgres" | "redis",
  dataDir: string,
  say: Say,
): Promise<SupervisedServer> {
  let url = "";
  let port: number | undefined;
  const logPath = logPathOf(dataDir, name);
  const onSpawn = (pid: number) => recordProcess(dataDir, name, pid);
  const supervised = await supervise(
    {
      name,
      logPath,
      start: async () => {
        const options = { dataDir, onSpawn, ...(port !== undefined && { port }) };
        const server = await (name === "postgres" ? startPostgres(options) : startRedis(options));
        ({ url, port } = server);
        return server;
      },
    },
    say,
  );
  return { url, supervised };
}

/** One of our own programs. */
export interface ProgramOptions {
  readonly entry: string;
  readonly root: string;
  readonly env: NodeJS.ProcessEnv;
}

/** Starts the API or the worker and keeps it running; the warnings and errors of its log are shown. */
export async function superviseProgram(
  name: "api" | "worker",
  dataDir: string,
  program: ProgramOptions,
  say: Say,
): Promise<Supervised> {
  const logPath = logPathOf(dataDir, name);
  const follower = followLog(name, logPath, say);
  const onSpawn = (pid: number) => recordProcess(dataDir, name, pid);
  const start = () => startNodeChild({ entry: program.entry, cwd: program.root, env: program.env, logPath, onSpawn });
  const supervised = await supervise({ name, logPath, start }, say);
  return {
    gaveUp: supervised.gaveUp,
    stop: async (hurry) => {
      await supervised.stop(hurry);
      follower.stop();
    },
  };
}

/** Where a process writes. */
export function logPathOf(dataDir: string, name: ProcessName): string {
  return join(dataDir, "logs", `${name}.log`);
}

/** The environment of our programs: all that was given to us, and what we have found out. */
export function programEnvironment(
  settings: StartSettings,
  found: Record<string, string | undefined>,
): NodeJS.ProcessEnv {
  return { ...settings.inherited, ...found, HOST: settings.HOST, SLUICE_DATA_DIR: settings.dataDir };
}
