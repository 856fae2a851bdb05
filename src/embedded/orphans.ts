/**
 * What we started is written down in the data directory, so that the next start can end what a kill -9 of this one left
 * behind. Never by name: only what was recorded with its start time, or works in our own data directory.
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { StartFailure } from "./failure.js";
import { readIfThere, readJson, writePrivateJson } from "./private-files.js";
import { type EndStep, endProcess, identify, type ProcessIdentity, workingDirectoryOf } from "./process-identity.js";

/** The processes that a start has. */
export type ProcessName = "api" | "worker" | "redis" | "postgres";

const SECOND = 1_000;

/** In the order of ending: who uses the servers first, so that they can still finish what they have. */
const endings: Record<ProcessName, EndStep[]> = {
  api: [
    { signal: "SIGTERM", waitMs: 12 * SECOND },
    { signal: "SIGKILL", waitMs: 5 * SECOND },
  ],
  worker: [
    { signal: "SIGTERM", waitMs: 12 * SECOND },
    { signal: "SIGKILL", waitMs: 5 * SECOND },
  ],
  redis: [
    { signal: "SIGTERM", waitMs: 15 * SECOND },
    { signal: "SIGKILL", waitMs: 5 * SECOND },
  ],
  postgres: [
    { signal: "SIGINT", waitMs: 15 * SECOND },
    { signal: "SIGQUIT", waitMs: 5 * SECOND },
    { signal: "SIGKILL", waitMs: 5 * SECOND },
  ],
};

const recordSchema = z.partialRecord(
  z.enum(["api", "worker", "redis", "postgres"]),
  z.object({ pid: z.number().int().positive(), startedAt: z.string() }),
);
type ProcessRecord = z.infer<typeof recordSchema>;

/** Writes down a process that was just started. */
export function recordProcess(dataDir: string, name: ProcessName, pid: number): void {
  const identity = identify(pid);
  if (identity) writePrivateJson(recordPath(dataDir), { ...readRecord(dataDir), [name]: identity });
}

/** The process that was written down last under this name, or null where it doesn't run. */
export function findProcess(dataDir: string, name: ProcessName): ProcessIdentity | null {
  return alive(readRecord(dataDir)[name])[0] ?? null;
}

/** Forgets them all, when all have ended. */
export function forgetProcesses(dataDir: string): void {
  rmSync(recordPath(dataDir), { force: true });
}

/**
 * Ends what a former start left running on this data directory. Only for the holder of its lock.
 *
 * @returns the names of those that were ended
 */
export async function endOrphans(dataDir: string, say: (line: string) => void): Promise<ProcessName[]> {
  const record = readRecord(dataDir);
  const targets: Record<ProcessName, ProcessIdentity[]> = {
    api: alive(record.api),
    worker: alive(record.worker),
    redis: alive(record.redis, fromPidFile(join(dataDir, "redis"), "redis.pid")),
    postgres: alive(record.postgres, fromPidFile(join(dataDir, "postgres"), "postmaster.pid")),
  };
  const found = Object.values(targets).some((list) => list.length > 0);
  if (found) say("Ending what a former start left running …");
  const ended: ProcessName[] = [];
  const end = async (name: ProcessName) => {
    for (const target of targets[name]) {
      if (!(await endProcess(target, endings[name]))) {
        throw new StartFailure(
          `The ${name} of a former start (process ${target.pid}) doesn't end. End it by hand: kill -9 ${target.pid}`,
        );
      }
      ended.push(name);
    }
  };
  await Promise.all([end("api"), end("worker")]);
  await end("redis");
  await end("postgres");
  forgetProcesses(dataDir);
  return ended;
}

function alive(recorded?: ProcessIdentity, byPidFile?: ProcessIdentity | null): ProcessIdentity[] {
  const identities = recorded && identify(recorded.pid)?.startedAt === recorded.startedAt ? [recorded] : [];
  if (byPidFile && byPidFile.pid !== identities[0]?.pid) identities.push(byPidFile);
  return identities;
}

/** For the moment between starting a server and recording it: its own pid file, believed only of a process that works there. */
function fromPidFile(directory: string, file: string): ProcessIdentity | null {
  const pid = Number(readIfThere(join(directory, file))?.split("\n")[0]);
  return pid > 0 && workingDirectoryOf(pid) === directory ? identify(pid) : null;
}

function readRecord(dataDir: string): ProcessRecord {
  return recordSchema.safeParse(readJson(recordPath(dataDir))).data ?? {};
}

function recordPath(dataDir: string): string {
  return join(dataDir, "processes.json");
}
