/**
 * Child processes of their own: detached, so that a Ctrl-C at the terminal reaches only us and we can end them in order;
 * and writing straight into a log file, so that they never block on a terminal nor fail when we are gone.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, mkdirSync, openSync, readSync, renameSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { sendSignal } from "./process-identity.js";

const KEEP_LOG_BYTES = 20 * 1024 * 1024;

/** How a server of our own is to run. */
export interface ServerOptions {
  readonly dataDir: string;
  /** Where left out, a free one is chosen. */
  readonly port?: number;
  /** More arguments for the server, for example `["--maxmemory", "64mb"]`. */
  readonly extraArgs?: readonly string[];
  /** Called at once when there is a process, long before it is ready. */
  readonly onSpawn?: (pid: number) => void;
}

/** How a process ended. */
export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A process of ours that was started. */
export interface Running {
  readonly pid: number;
  /** Resolves when it is gone; never rejects. */
  readonly exited: Promise<Exit>;
  /** Ends it in an orderly way, at once when `hurry` is or becomes aborted. Resolves when it is gone. */
  stop(hurry?: AbortSignal): Promise<void>;
}

/** What to run, and how. */
export interface SpawnOptions {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly logPath: string;
  /** The whole environment of the child; ours where left out. */
  readonly env?: NodeJS.ProcessEnv;
  readonly uid?: number;
  readonly gid?: number;
  /** Written to its standard input, which is then closed. */
  readonly input?: string;
  /** Opens a channel to the child, whose closing tells it that we are gone. */
  readonly ipc?: boolean;
}

/** A child process, before it is known how it wants to be stopped. */
export interface Spawned {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly exited: Promise<Exit>;
}

/**
 * Starts a process.
 *
 * @throws the operating system's error when it can't be started at all (ENOENT, EACCES)
 */
export async function spawnDetached(options: SpawnOptions): Promise<Spawned> {
  mkdirSync(dirname(options.logPath), { recursive: true, mode: 0o700 });
  rotate(options.logPath);
  const log = openSync(options.logPath, "a", 0o600);
  try {
    const child = spawn(options.command, options.args, {
      cwd: options.cwd,
      detached: true,
      stdio: [options.input === undefined ? "ignore" : "pipe", log, log, ...(options.ipc ? ["ipc" as const] : [])],
      ...(options.env && { env: options.env }),
      ...(options.uid !== undefined && { uid: options.uid, gid: options.gid }),
    });
    const exited = new Promise<Exit>((resolve) => child.once("exit", (code, signal) => resolve({ code, signal })));
    const { pid } = child;
    if (pid === undefined) throw await new Promise<Error>((resolve) => child.once("error", resolve));
    child.on("error", () => {}); // a signal or message that found it gone: `exited` says so
    child.stdin?.on("error", () => {});
    child.stdin?.end(options.input);
    return { child, pid, exited };
  } finally {
    closeSync(log);
  }
}

/** Sends a signal and waits. What is still there after `deadlineMs`, or at a hurry, is killed with its process group. */
export async function stopWithin(
  { pid, exited }: Pick<Spawned, "pid" | "exited">,
  signal: NodeJS.Signals,
  deadlineMs: number,
  hurry?: AbortSignal,
): Promise<void> {
  let gone = false;
  const done = exited.then(() => {
    gone = true;
  });
  await Promise.race([done, new Promise(setImmediate)]); // a pid that is already free again must get no signal
  if (gone) return;
  sendSignal(pid, signal);
  const kill = () => {
    if (!gone) sendSignal(pid, "SIGKILL", true);
  };
  const timer = setTimeout(kill, deadlineMs);
  if (hurry?.aborted) kill();
  else hurry?.addEventListener("abort", kill, { once: true });
  try {
    await done;
  } finally {
    clearTimeout(timer);
    hurry?.removeEventListener("abort", kill);
  }
}

/** The last lines of a log, for a message about what went wrong. */
export function tailOf(path: string, lines = 12): string {
  try {
    const { size } = statSync(path);
    const length = Math.min(size, 16 * 1024);
    const buffer = Buffer.alloc(length);
    const file = openSync(path, "r");
    try {
      readSync(file, buffer, 0, length, size - length);
    } finally {
      closeSync(file);
    }
    return buffer.toString("utf8").trimEnd().split("\n").slice(-lines).join("\n");
  } catch {
    return "";
  }
}

/** How a process ended, in words. */
export function describeExit({ code, signal }: Exit): string {
  return signal ? `was ended by ${signal}` : `ended with code ${code}`;
}

function rotate(path: string): void {
  try {
    if (statSync(path).size > KEEP_LOG_BYTES) renameSync(path, `${path}.1`);
  } catch {
    // no log yet
  }
}
