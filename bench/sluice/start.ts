/** Sluice as production runs it: what `npm run build` made, with its own defaults. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { spawnDetached, stopWithin, tailOf } from "../../src/embedded/spawn.js";
import type { RunDir } from "../run-dir.js";
import { until } from "../wait.js";

const DIST = fileURLToPath(new URL("../../dist", import.meta.url));
const READY_MS = 60_000;
const STOP_MS = 15_000;

/** Whether there is a build at all; whether it is of these sources is for whoever runs this to see to. */
export function isBuilt(): boolean {
  return existsSync(join(DIST, "src/main.js")) && existsSync(join(DIST, "workers/main.js"));
}

/** One process of Sluice, or a primary and its processes. */
export interface SluiceProcess {
  readonly pid: number;
  /** What it said when it was ready. */
  readonly ready: RegExpExecArray;
  /** Rejects if it ends by itself; never resolves. */
  readonly died: Promise<never>;
  stop(): Promise<void>;
}

/** What is different from a deployment: limits are raised, since one address plays all the buyers, and none is left out. */
export const RAISED_LIMITS = {
  BACKLOG_LIMIT: "1000000",
  RATE_LIMIT_BUYER: "1000000/1000000",
  RATE_LIMIT_ADDRESS: "1000000/1000000",
};

export function startSluiceApi(runDir: RunDir, name: string, env: Record<string, string>, processes: number) {
  const more = { PORT: "0", HOST: "127.0.0.1", WEB_CONCURRENCY: String(processes) };
  return start(runDir, name, "src/main.js", { ...env, ...more }, /"url":"([^"]+)"/);
}

export function startSluiceWorker(runDir: RunDir, name: string, env: Record<string, string>) {
  return start(runDir, name, "workers/main.js", env, /worker ready/);
}

async function start(
  runDir: RunDir,
  name: string,
  entry: string,
  env: Record<string, string>,
  readyLine: RegExp,
): Promise<SluiceProcess> {
  const program = join(DIST, entry);
  const logPath = runDir.logPath(name);
  const spawned = await spawnDetached({
    command: process.execPath,
    args: ["--enable-source-maps", program],
    // A folder without a .env, and nothing of the caller's environment.
    cwd: runDir.path,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, NODE_ENV: "production", ...RAISED_LIMITS, ...env },
    logPath,
    // It ends by itself when we are gone.
    ipc: true,
  });
  runDir.endWithRun(spawned.pid);
  let stopping = false;
  const died = spawned.exited.then(({ code, signal }): Promise<never> => {
    if (stopping) return new Promise(() => {});
    throw new Error(`${name} ended (${signal ?? code}): ${tailOf(logPath)}`);
  });
  died.catch(() => {});
  const said = until(() => readyLine.exec(existsSync(logPath) ? readFileSync(logPath, "utf8") : ""), {
    what: `${name} to be ready`,
    timeoutMs: READY_MS,
  });
  said.catch(() => {});
  const ready = await Promise.race([said, died]);
  return {
    pid: spawned.pid,
    ready,
    died,
    async stop() {
      stopping = true;
      await stopWithin(spawned, "SIGTERM", STOP_MS);
    },
  };
}
