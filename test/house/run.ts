/** Commands, run as somebody at a terminal runs them. */
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { sendSignal } from "../../src/embedded/process-identity.js";
import { atEndOfFile, endWithRun } from "../support/test-file.js";
import { waitFor } from "../support/wait.js";

export const root = fileURLToPath(new URL("../..", import.meta.url));

/** Every setting empty, which counts as not set: a developer's own `.env` in this checkout stays out of it. */
const noSettings = Object.fromEntries(
  [...readFileSync(new URL("../../.env.example", import.meta.url), "utf8").matchAll(/^(\w+)=/gm)].map(([, name]) => [
    name,
    "",
  ]),
);

export interface Run {
  /** Also the id of its process group, where a Ctrl-C arrives. */
  readonly pid: number;
  readonly stdout: string;
  readonly stderr: string;
  /** Resolves when it is gone and all its output has been read. */
  readonly exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  /** Waits until standard output matches. Rejects when it ends without. */
  sees(pattern: RegExp): Promise<RegExpExecArray>;
}

export interface RunOptions {
  /** A setting that is undefined is not there at all, while the others are there and empty. */
  readonly env?: Record<string, string | undefined>;
  readonly cwd?: string;
  /** The user to run it as, where we are root. */
  readonly uid?: number | undefined;
}

/** Starts a command in a process group of its own, with this environment and no other. It ends with the test file. */
export function run(command: string, args: readonly string[], options: RunOptions = {}): Run {
  const { env = {}, cwd = root, uid } = options;
  const child = spawn(command, args, {
    cwd,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, npm_config_update_notifier: "false", ...noSettings, ...env },
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
    ...(uid !== undefined && { uid, gid: uid }),
  });
  const pid = child.pid as number;
  const said = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    child[name].setEncoding("utf8").on("data", (text: string) => {
      said[name] += text;
    });
  }
  let ended = false;
  const exited = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => {
      ended = true;
      resolve({ code, signal });
    });
  });
  if (pid !== undefined) {
    endWithRun(pid);
    atEndOfFile(async () => {
      if (!ended) sendSignal(pid, "SIGKILL", true);
      await exited;
    });
  }

  return {
    pid,
    get stdout() {
      return said.stdout;
    },
    get stderr() {
      return said.stderr;
    },
    exited,
    async sees(pattern) {
      const seen = await waitFor(() => pattern.exec(said.stdout) ?? (ended && "its end"), {
        what: `${command} ${args.join(" ")} to print ${pattern}`,
        timeoutMs: 45_000,
      });
      if (seen === "its end") throw new Error(`It ended without ${pattern}:\n${said.stdout}\n${said.stderr}`);
      return seen as RegExpExecArray;
    },
  };
}

/** Runs a command to its end. */
export async function finished(command: string, args: readonly string[], options: RunOptions = {}) {
  const running = run(command, args, options);
  const { code } = await running.exited;
  return { code, stdout: running.stdout, stderr: running.stderr };
}

/** This user, where we are root and it can run this program; else undefined, which is ourselves. */
export function userWhoMayRun(program: string, uid: number): number | undefined {
  const mayBecome = process.getuid?.() === 0;
  return mayBecome && spawnSync(program, ["-v"], { uid, gid: uid, cwd: "/" }).status === 0 ? uid : undefined;
}

/** What a running process was started with. */
export function commandLineOf(pid: number): string {
  return process.platform === "linux"
    ? readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim()
    : execFileSync("ps", ["-o", "command=", "-p", String(pid)], { encoding: "utf8" }).trim();
}
