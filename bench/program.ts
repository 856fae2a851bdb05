import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { compileProgram } from "./compiled.js";
import { cpuSecondsOf, residentBytesOf } from "./process-usage.js";

/** A program of this folder, running as a process of its own. */
export interface Program {
  readonly pid: number;
  /** Where it listens; of a worker there is none. */
  readonly url: string | undefined;
  /** Rejects with what it wrote to standard error if it ends by itself; never resolves. */
  readonly died: Promise<never>;
  /** What it printed after it was ready, as JSON: one that measures something and ends. @throws Error if it ends without */
  readonly report: Promise<unknown>;
  /** Ends it in an orderly way. @throws Error where it ends otherwise than with status 0, or has to be killed */
  stop(): Promise<void>;
  /** Ends it at once. */
  kill(): Promise<void>;
  /** Processor time it has used so far. */
  cpuSeconds(): number;
  rssBytes(): number;
}

export interface ProgramOptions {
  /** Called at once when there is a process, long before it is ready. */
  readonly onSpawn?: (pid: number) => void;
}

const READY_MS = 60_000;
const STOP_MS = 15_000;
const KEEP_LINES = 40;

/**
 * Compiles a program, starts it with this environment and no other, and waits until it says that it is ready. It ends by itself
 * when we are gone.
 *
 * @param entry from the root of the package, for example `bench/ceilings/echo.ts`
 * @throws Error with what it wrote to standard error, if it ends before it is ready, or says nothing for a minute
 */
export async function startProgram(
  entry: string,
  env: Readonly<Record<string, string>>,
  { onSpawn }: ProgramOptions = {},
): Promise<Program> {
  const path = await compileProgram(entry);
  const child = spawn(process.execPath, ["--enable-source-maps", path], {
    env: { PATH: process.env.PATH, HOME: process.env.HOME, NODE_ENV: "production", ...env },
    // In a group of its own: a Ctrl-C reaches us alone, and we end it in order.
    detached: true,
    stdio: ["ignore", "pipe", "pipe", "ipc"],
  });
  // Types know of the pipes only where there is no channel beside them.
  const { stdout, stderr } = child as { readonly stdout: Readable; readonly stderr: Readable };
  const exited = new Promise<string>((resolve) =>
    child.once("close", (code, signal) => resolve(signal ?? String(code))),
  );
  await new Promise<void>((started, failed) => child.once("spawn", started).once("error", failed));
  const pid = child.pid as number;
  onSpawn?.(pid);

  const complaints: string[] = [];
  createInterface({ input: stderr }).on("line", (line) => {
    complaints.push(line);
    if (complaints.length > KEEP_LINES) complaints.shift();
  });
  const failure = (what: string) => new Error([`${entry} ${what}`, ...complaints].join("\n"));
  const [ready, report] = [promise<{ readonly url?: string }>(), promise<unknown>()];
  createInterface({ input: stdout }).on("line", (line) => {
    try {
      const said = JSON.parse(line) as { ready?: boolean; url?: string };
      if (said.ready) ready.resolve(said);
      else report.resolve(said);
    } catch {
      complaints.push(line);
    }
  });

  let stopping = false;
  const died = exited.then((how): Promise<never> => {
    const error = failure(`ended (${how})`);
    ready.reject(error);
    report.reject(error);
    if (stopping) return new Promise(() => {});
    throw error;
  });
  // They are for whoever waits for them; nobody has to.
  died.catch(() => {});
  report.promise.catch(() => {});

  const kill = async () => {
    stopping = true;
    child.kill("SIGKILL");
    await exited;
  };
  const { url } = await orKilled(ready.promise, READY_MS, kill, () => failure(`was not ready in ${READY_MS} ms`));
  return {
    pid,
    url,
    died,
    report: report.promise,
    kill,
    async stop() {
      stopping = true;
      child.kill("SIGTERM");
      const how = await orKilled(exited, STOP_MS, kill, () => failure(`did not end in ${STOP_MS} ms`));
      if (how !== "0") throw failure(`did not end in order (${how})`);
    },
    cpuSeconds: () => cpuSecondsOf([pid]),
    rssBytes: () => residentBytesOf([pid]),
  };
}

/** What is waited for, or the error after `timeoutMs`, when the process is gone. */
async function orKilled<Result>(
  waitedFor: Promise<Result>,
  timeoutMs: number,
  kill: () => Promise<void>,
  error: () => Error,
): Promise<Result> {
  const timer = new AbortController();
  const late = sleep(timeoutMs, undefined, { signal: timer.signal }).then(async () => {
    await kill();
    throw error();
  });
  late.catch(() => {});
  return Promise.race([waitedFor, late]).finally(() => timer.abort());
}

function promise<Result>() {
  let resolve: (result: Result) => void = () => {};
  let reject: (error: Error) => void = () => {};
  const made = new Promise<Result>((resolveIt, rejectIt) => {
    resolve = resolveIt;
    reject = rejectIt;
  });
  return { promise: made, resolve, reject };
}
