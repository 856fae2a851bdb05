import { mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { endProcess, identify, type ProcessIdentity } from "../../src/embedded/process-identity.js";

/** The migrated database that test files clone. */
export const TEMPLATE = "sluice_template";

/** Makes the folder of this test run. All that tests leave lies in it and goes at the end. */
export function makeRunDir(): string {
  const directory = mkdtempSync(join(tmpdir(), "sluice-test-"));
  mkdirSync(join(directory, "processes"));
  return directory;
}

/** Writes down a process that was started for tests, so that it ends with the run also if its test file was cut off. */
export function registerProcess(runDir: string, pid: number): void {
  const identity = identify(pid);
  if (identity) writeFileSync(join(runDir, "processes", String(pid)), JSON.stringify(identity));
}

/** Ends what was written down and still runs. A pid that meanwhile names another process is left alone. */
export async function endRegisteredProcesses(runDir: string): Promise<void> {
  const folder = join(runDir, "processes");
  const identities = readdirSync(folder).map((name) => JSON.parse(readFileSync(join(folder, name), "utf8")));
  const steps = [{ signal: "SIGKILL", waitMs: 5_000 }] as const;
  await Promise.all(identities.map((identity: ProcessIdentity) => endProcess(identity, steps)));
}
