import { spawn } from "node:child_process";
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { inject } from "vitest";
import { compiledPath } from "./compiled.js";
import { atEndOfFile, endWithRun, makeTempDir } from "./test-file.js";

const root = fileURLToPath(new URL("../..", import.meta.url));

export type NodeProcess = {
  readonly pid: number;
  /** What it has printed so far, standard output and standard error, line by line. */
  readonly lines: readonly string[];
  /** SIGSTOP and SIGCONT freeze and thaw it. Returns at once: `exited` tells when it is gone. */
  kill(signal?: NodeJS.Signals): void;
  /** Resolves when it is gone and all its output has been read. */
  readonly exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  /** The first line that matches, also among those already printed. Rejects when it ends without one, and in time. */
  waitForLine(pattern: RegExp, timeoutMs?: number): Promise<RegExpMatchArray>;
};

/**
 * Runs one of our programs as a process of its own, or a TypeScript file of the tests. It gets this environment and no other, and a folder
 * of its own to work in: neither a developer's `.env` nor a running `npm start` can leak in. It is killed at the end of
 * the test file, if it still runs.
 *
 * @param entry from the root of the package, for example `src/main.ts`
 */
export async function spawnNode(
  entry: string,
  env: Record<string, string> = {},
  args: readonly string[] = [],
): Promise<NodeProcess> {
  const compiled = compiledPath(inject("compiled"), entry);
  const program = compiled ? [compiled] : ["--import", import.meta.resolve("tsx"), resolve(root, entry)];
  const child = spawn(process.execPath, [...program, ...args], {
    cwd: makeTempDir("process"),
    env: { PATH: process.env.PATH, HOME: process.env.HOME, NODE_ENV: "test", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const exited = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((done) => {
    child.once("close", (code, signal) => done({ code, signal }));
  });
  await new Promise<void>((started, failed) => child.once("spawn", started).once("error", failed));
  const pid = child.pid as number;
  endWithRun(pid);
  atEndOfFile(async () => {
    child.kill("SIGKILL");
    await exited;
  });

  const lines: string[] = [];
  const watchers = new Set<(line: string) => void>();
  for (const input of [child.stdout, child.stderr]) {
    createInterface({ input }).on("line", (line) => {
      lines.push(line);
      for (const watcher of watchers) watcher(line);
    });
  }

  const waitForLine = (pattern: RegExp, timeoutMs = 45_000) =>
    new Promise<RegExpMatchArray>((found, missing) => {
      const settle = (act: () => void) => {
        clearTimeout(timer);
        watchers.delete(watch);
        act();
      };
      const fail = (why: string) =>
        settle(() => missing(new Error(`${entry} ${why} without a line like ${pattern}. It printed:\n${tail(lines)}`)));
      const watch = (line: string) => {
        const match = line.match(pattern);
        if (match) settle(() => found(match));
      };
      const timer = setTimeout(() => fail(`ran ${timeoutMs} ms`), timeoutMs);
      watchers.add(watch);
      for (const line of lines) watch(line);
      void exited.then(({ code, signal }) => fail(`ended (${signal ?? code})`));
    });

  return { pid, lines, kill: (signal = "SIGTERM") => void child.kill(signal), exited, waitForLine };
}

function tail(lines: readonly string[]): string {
  return lines.slice(-20).join("\n") || "(nothing)";
}
