/** The folder of one run and all that it has started: both are gone when the run is over, however that came about. */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { makeRunDir, registerProcess } from "../test/support/run-dir.js";

export interface RunDir {
  readonly path: string;
  /** of the process that clears up after this one */
  readonly wardenPid: number | undefined;
  /** A new file for what a program of this run prints. */
  logPath(name: string): string;
  /** Sees to it that a process ends at the latest with the run, also if the run is killed. */
  endWithRun(pid: number): void;
  /** Ends what still runs and removes the folder. */
  clearUp(): Promise<void>;
}

export function openRunDir(): RunDir {
  const path = makeRunDir();
  const program = fileURLToPath(new URL("../test/support/warden.ts", import.meta.url));
  // In a process group of its own, so that a Ctrl-C at the terminal ends the run but not the one that clears up after it.
  const warden = spawn(process.execPath, ["--import", import.meta.resolve("tsx"), program, path], {
    detached: true,
    stdio: ["pipe", "ignore", "inherit"],
  });
  const gone = new Promise<void>((resolve) => warden.once("exit", () => resolve()));
  let logs = 0;
  return {
    path,
    wardenPid: warden.pid,
    logPath(name) {
      logs += 1;
      return join(path, "logs", `${logs}-${name}.log`);
    },
    endWithRun: (pid) => registerProcess(path, pid),
    async clearUp() {
      warden.stdin.end();
      await gone;
    },
  };
}
