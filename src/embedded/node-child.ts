/** The API and the worker: Node processes of ours that end by themselves when the channel to us closes. */
import { type Running, spawnDetached, stopWithin } from "./spawn.js";

/** Longer than the processes take themselves to finish what they have begun (10 s). */
const DRAIN_DEADLINE_MS = 12_000;

/** A program of this project. */
export interface NodeChildOptions {
  /** Absolute path of its TypeScript entry. */
  readonly entry: string;
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  readonly logPath: string;
  readonly onSpawn: (pid: number) => void;
}

/** Starts a program; it is ready when it says so, not when this returns. */
export async function startNodeChild({ entry, cwd, env, logPath, onSpawn }: NodeChildOptions): Promise<Running> {
  const spawned = await spawnDetached({
    command: process.execPath,
    args: ["--import", "tsx", entry],
    cwd,
    env,
    logPath,
    ipc: true,
  });
  onSpawn(spawned.pid);
  return {
    pid: spawned.pid,
    exited: spawned.exited,
    stop: (hurry) => stopWithin(spawned, "SIGTERM", DRAIN_DEADLINE_MS, hurry),
  };
}
