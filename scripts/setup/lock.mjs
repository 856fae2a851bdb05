/** Lets one setup work at a time: two starts after a clone must not both install. */
import { mkdirSync, readFileSync, renameSync, rmdirSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const BEAT_MS = 2_000;
/** So long without a beat is dead, also where its pid was given to another process. */
const STALE_MS = 20_000;

/**
 * Runs `work` while holding the lock; waits for whoever holds it. It is given back however this process ends, SIGKILL apart.
 *
 * @param interrupt called at a Ctrl-C; the lock is kept until it has resolved
 */
export async function withLock(path, say, work, interrupt) {
  mkdirSync(dirname(path), { recursive: true, mode: 0o711 });
  await take(path, say);
  const beat = setInterval(() => {
    const now = new Date();
    if (isMine(path)) utimesSync(path, now, now);
  }, BEAT_MS);
  const release = () => {
    clearInterval(beat);
    if (isMine(path)) rmSync(path, { force: true });
    try {
      rmdirSync(dirname(path)); // as it was, where it held nothing else
    } catch {
      // it does
    }
  };
  process.once("exit", release);
  for (const [signal, code] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
    ["SIGHUP", 129],
  ])
    process.on(signal, async () => {
      await interrupt();
      process.exit(code);
    });
  try {
    return await work();
  } finally {
    process.off("exit", release);
    release();
  }
}

async function take(path, say) {
  let told = false;
  for (;;) {
    try {
      mkdirSync(dirname(path), { recursive: true, mode: 0o711 });
      writeFileSync(path, String(process.pid), { flag: "wx" });
      return;
    } catch (error) {
      // ENOENT: the other one has just tidied the directory away.
      if (error.code !== "EEXIST" && error.code !== "ENOENT") throw error;
    }
    if (isStale(path)) {
      moveAway(path);
    } else {
      if (!told) say("Another start is setting things up; waiting for it …");
      told = true;
      await sleep(200);
    }
  }
}

/** A process that was asleep for long may have lost it. */
function isMine(path) {
  try {
    return Number(readFileSync(path, "utf8")) === process.pid;
  } catch {
    return false;
  }
}

function isStale(path) {
  try {
    const pid = Number(readFileSync(path, "utf8"));
    const ageMs = Date.now() - statSync(path).mtimeMs;
    // Just made, and its pid not written yet.
    if (!pid) return ageMs > BEAT_MS;
    return ageMs > STALE_MS || !isAlive(pid);
  } catch {
    return false;
  }
}

/** By renaming: of two that find it stale only one moves it, and the other looks again. */
function moveAway(path) {
  const aside = `${path}.${process.pid}`;
  try {
    renameSync(path, aside);
    rmSync(aside, { force: true });
  } catch (error) {
    if (error.code !== "ENOENT") throw error;
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
}
