import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { InstanceRunning, takeInstanceLock } from "../../src/embedded/instance-lock.js";
import { identify } from "../../src/embedded/process-identity.js";
import { endWithRun, makeTempDir } from "../support/test-file.js";

const about = { purpose: "Sluice", url: "http://127.0.0.1:4000" };
const lockOf = (dataDir: string) => join(dataDir, "instance.lock");

test("a second instance is told where the first one runs, and harms nothing", async () => {
  const dataDir = makeTempDir("lock");
  const lock = await takeInstanceLock(dataDir, about);
  const held = readFileSync(lockOf(dataDir), "utf8");
  const second = takeInstanceLock(dataDir, about);
  await expect(second).rejects.toThrow(InstanceRunning);
  await expect(second).rejects.toThrow(/^Sluice already runs at http:\/\/127\.0\.0\.1:4000 \(process \d+\)[^\n]+$/);
  expect(readFileSync(lockOf(dataDir), "utf8")).toBe(held);
  lock.release();
  expect(existsSync(lockOf(dataDir))).toBe(false);
  (await takeInstanceLock(dataDir, about)).release();
});

test("a lock that a kill -9 left is taken over", async () => {
  const dataDir = makeTempDir("lock");
  const holder = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: "ignore" });
  endWithRun(holder.pid!);
  writeFileSync(lockOf(dataDir), JSON.stringify({ ...identify(holder.pid!), ...about }));
  await expect(takeInstanceLock(dataDir, about)).rejects.toThrow(InstanceRunning);
  holder.kill("SIGKILL");
  await once(holder, "exit");
  (await takeInstanceLock(dataDir, about)).release();
});

test("a pid that meanwhile names another process is no lock", async () => {
  const dataDir = makeTempDir("lock");
  writeFileSync(lockOf(dataDir), JSON.stringify({ ...identify(process.ppid), startedAt: "another time", ...about }));
  (await takeInstanceLock(dataDir, about)).release();
});

test.each(["", "{", '{"pid":"x"}'])("a lock that can't be read (%j) is no lock", async (text) => {
  const dataDir = makeTempDir("lock");
  writeFileSync(lockOf(dataDir), text);
  (await takeInstanceLock(dataDir, about)).release();
});

test("of many that find a stale lock at once, exactly one takes it over", async () => {
  for (let round = 0; round < 20; round += 1) {
    const dataDir = makeTempDir("lock");
    writeFileSync(lockOf(dataDir), JSON.stringify({ pid: process.ppid, startedAt: "long ago", ...about }));
    // Told apart by their purpose: the lock of one process is otherwise always the same text.
    const tries = Array.from({ length: 8 }, (_, index) => takeInstanceLock(dataDir, { purpose: `start ${index}` }));
    const results = await Promise.allSettled(tries);
    const taken = results.filter((result) => result.status === "fulfilled");
    expect(taken).toHaveLength(1);
    taken[0]?.value.release();
    expect(existsSync(lockOf(dataDir))).toBe(false);
  }
});
