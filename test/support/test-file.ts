/** What belongs to one test file and goes with it: its folders, its processes, its databases. */
import { chmodSync, mkdtempSync } from "node:fs";
import { join } from "node:path";
import { afterAll, inject } from "vitest";
import { registerProcess } from "./run-dir.js";

type Cleanup = () => unknown;
const cleanups: Cleanup[] = [];

// Vitest loads this module anew for each test file, and the hook that is there first runs last: after those of the tests.
afterAll(async () => {
  const failures: unknown[] = [];
  // One after the other and the newest first: a process ends before the database that it uses.
  for (const cleanup of cleanups.reverse()) {
    try {
      await cleanup();
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw new AggregateError(failures, "not everything of this test file could be cleaned up");
});

/** Runs `cleanup` at the end of this test file, whatever became of its tests. */
export function atEndOfFile(cleanup: Cleanup): void {
  cleanups.push(cleanup);
}

/** A new folder for this test file; it goes with the run, so that a failure can still be looked into during it. */
export function makeTempDir(name: string): string {
  const directory = mkdtempSync(join(inject("runDir"), `${name}-`));
  chmodSync(directory, 0o711);
  return directory;
}

/** Sees to it that a process ends at the latest with the run, should this file be cut off before it can clean up. */
export function endWithRun(pid: number): void {
  registerProcess(inject("runDir"), pid);
}
