/**
 * A process that outlives a test run and clears up after it: Vitest runs no teardown when it is interrupted, and none can run
 * when it is killed. Its standard input closes when the run is over, however that came about.
 */
import { rmSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { endRegisteredProcesses } from "./run-dir.js";

const runDir = process.argv[2] as string;
const parent = process.ppid;

process.stdin.resume().once("close", async () => {
  await endRegisteredProcesses(runDir);
  if (process.ppid !== parent) {
    // The run was cut off: its workers may have started something in their last moments.
    await sleep(1_000);
    await endRegisteredProcesses(runDir);
  }
  rmSync(runDir, { recursive: true, force: true, maxRetries: 5 });
});
