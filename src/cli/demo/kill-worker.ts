import { statSync } from "node:fs";
import { join } from "node:path";
import { ConfigError } from "../../config.js";
import type { Database } from "../../db/client.js";
import { countRequests, type RequestCounts } from "../../db/request-counts.js";
import { SECOND } from "../../domain/time.js";
import { findProcess } from "../../embedded/orphans.js";
import { isRunning, type ProcessIdentity, sendSignal } from "../../embedded/process-identity.js";
import { pause } from "../../lifecycle/pause.js";

/** A kill of the worker, and the way back from it. Seconds count from the kill; null where it didn't come to that. */
export interface WorkerKill {
  readonly pid: number;
  /** requests that were accepted and not decided right after the kill, by the database */
  readonly unwritten: number;
  /** the most that there were until all was decided */
  readonly unwrittenAtMost: number;
  /** the process that `npm start` has put in its place */
  readonly next: { readonly pid: number; readonly seconds: number } | null;
  readonly decidedSeconds: number | null;
}

export interface KillDeps {
  readonly dataDir: string;
  readonly reads: Database;
  readonly saleId: string;
  /** units that will be accepted, as far as one can know */
  readonly expected: number;
  note(line: string): void;
}

/**
 * How many of the crowd are let in at once until the kill. All of them would have every unit accepted within moments, and
 * written before anybody could look: there would be nothing left to lose.
 */
export const SOCKETS_UNTIL_KILL = 8;

/** Whoever dies sooner dies young, to the supervisor of `npm start`. */
const YOUNG_MS = 30 * SECOND;
const LOOK_EVERY_MS = 2;
const BACK_WITHIN_MS = 60 * SECOND;

/** The worker of `npm start` on this machine. @throws ConfigError where there is none */
export function findWorker(dataDir: string): ProcessIdentity {
  const worker = findProcess(dataDir, "worker");
  if (worker) return worker;
  throw new ConfigError(
    "--kill-worker needs a worker on this machine that npm start starts again, and there is none. Nothing was sold.",
  );
}

/**
 * Waits until the worker is no longer young, where it isn't the first one: `npm start` gives up, and ends everything, when
 * one dies young five times in a row, which impatient demos would look like.
 */
export async function waitWhileYoung(dataDir: string, say: (line: string) => void): Promise<void> {
  // The one is written at every start of a process, the other at the start of them all.
  const [latest, first] = ["processes.json", "runtime.json"].map((name) => statSync(join(dataDir, name)).mtimeMs);
  if (latest === undefined || first === undefined || latest - first < YOUNG_MS / 3) return;
  const waitMs = latest + YOUNG_MS - Date.now();
  if (waitMs <= 0) return;
  say(
    `A process was started again just now: waiting ${Math.ceil(waitMs / SECOND)} s before the worker is killed again.\n`,
  );
  await pause(waitMs);
}

/**
 * Kills the worker half-way, as soon as something is accepted that it has not written; three quarters of the way in any
 * case, so that the last quarter finds it dead. `killed` is called right after the kill. Resolves when all is decided, with
 * null where the storm was over before.
 */
export async function killWorker(
  worker: ProcessIdentity,
  deps: KillDeps,
  killed: () => void,
  over: AbortSignal,
): Promise<WorkerKill | null> {
  for (;;) {
    const last = over.aborted;
    const { accepted, undecided } = await look(deps);
    const half = accepted >= deps.expected / 2 && undecided > 0;
    if (half || accepted >= (deps.expected * 3) / 4) break;
    if (last) return null;
    await pause(LOOK_EVERY_MS, over);
  }
  // The identity again: the number of a process that has ended meanwhile may be somebody else's by now.
  if (isRunning(worker)) sendSignal(worker.pid, "SIGKILL");
  killed();
  return comeBack(worker, deps);
}

async function comeBack(worker: ProcessIdentity, deps: KillDeps): Promise<WorkerKill> {
  const killedAt = performance.now();
  const seconds = () => (performance.now() - killedAt) / SECOND;
  const { undecided: unwritten } = await look(deps);
  deps.note(`  worker     process ${worker.pid} killed, ${unwritten} accepted and not yet written`);
  let unwrittenAtMost = unwritten;
  let next: WorkerKill["next"] = null;
  while (seconds() * SECOND < BACK_WITHIN_MS) {
    if (!next) {
      const found = findProcess(deps.dataDir, "worker");
      if (found && found.startedAt !== worker.startedAt) {
        next = { pid: found.pid, seconds: seconds() };
        deps.note(`  worker     process ${found.pid} in its place after ${next.seconds.toFixed(1)} s`);
      }
    }
    const { undecided } = await look(deps);
    unwrittenAtMost = Math.max(unwrittenAtMost, undecided);
    if (next && undecided === 0) {
      return { pid: worker.pid, unwritten, unwrittenAtMost, next, decidedSeconds: seconds() };
    }
    await pause(50);
  }
  return { pid: worker.pid, unwritten, unwrittenAtMost, next, decidedSeconds: null };
}

/** How far the requests have come; a database that can't say so just now is asked again. */
async function look({ reads, saleId }: KillDeps): Promise<RequestCounts> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await countRequests(reads, saleId);
    } catch (error) {
      if (attempt === 10) throw error;
      await pause(SECOND / 4);
    }
  }
}
