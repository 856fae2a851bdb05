/**
 * One instance for each data directory. Node has no flock, so the lock is a file that names its holder; it counts for as
 * long as exactly that process runs (pid and start time), so nothing has to be tidied after a kill -9.
 */
import { linkSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { StartFailure } from "./failure.js";
import { makeDataDir, readIfThere, writeTemporary } from "./private-files.js";
import { identify, isRunning } from "./process-identity.js";

const holderSchema = z.object({
  pid: z.number().int().positive(),
  startedAt: z.string(),
  purpose: z.string(),
  url: z.string().optional(),
});
type Holder = z.infer<typeof holderSchema>;

/** A lock that is held. */
export interface InstanceLock {
  /** Gives it back. Does nothing where it isn't ours any more. */
  release(): void;
}

/** The data directory is in use by another process, which goes on unharmed. */
export class InstanceRunning extends StartFailure {}

/**
 * Takes the lock of a data directory, making the directory where it is missing. A lock whose holder is gone is taken over.
 *
 * @param about what the holder does and where it is to be found, for the message that a second one gets
 * @throws InstanceRunning
 */
export async function takeInstanceLock(
  dataDir: string,
  about: { purpose: string; url?: string },
): Promise<InstanceLock> {
  makeDataDir(dataDir);
  const path = lockPath(dataDir);
  const self = identify(process.pid);
  if (!self) throw new StartFailure("The operating system doesn't say when this process started: is /proc mounted?");
  const text = JSON.stringify({ ...self, ...about } satisfies Holder);

  let contested = false;
  for (;;) {
    const temporary = writeTemporary(path, text);
    try {
      linkSync(temporary, path);
      if (!contested) break;
      // Whoever judged the same stale lock may just now be moving ours away by mistake, and a third get in between.
      await sleep(100);
      if (readIfThere(path) === text) break;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    } finally {
      rmSync(temporary, { force: true });
    }
    const found = readIfThere(path);
    if (found === null) continue;
    const holder = parseHolder(found);
    if (holder && isRunning(holder)) throw new InstanceRunning(describe(holder, dataDir));
    contested = true;
    await removeStale(path, found);
  }
  return {
    release: () => {
      if (readIfThere(path) === text) rmSync(path, { force: true });
    },
  };
}

/**
 * Two starts may find the same stale lock, and the slower one must not throw away what the faster one has just taken:
 * look at what was really moved, and put it back if it isn't what was judged.
 */
async function removeStale(path: string, judged: string): Promise<void> {
  const aside = `${path}.${process.pid}.stale`;
  try {
    renameSync(path, aside);
    if (readIfThere(aside) !== judged) linkSync(aside, path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "ENOENT" && code !== "EEXIST") throw error;
  } finally {
    rmSync(aside, { force: true });
  }
  await sleep(Math.random() * 20);
}

function lockPath(dataDir: string): string {
  return join(dataDir, "instance.lock");
}

function parseHolder(text: string): Holder | null {
  try {
    return holderSchema.parse(JSON.parse(text));
  } catch {
    return null;
  }
}

function describe(holder: Holder, dataDir: string): string {
  const where = holder.url ? ` at ${holder.url}` : "";
  return (
    `${holder.purpose} already runs${where} (process ${holder.pid}) with the data in ${dataDir}. ` +
    "Stop it first, or start this one with a SLUICE_DATA_DIR and PORT of its own."
  );
}
