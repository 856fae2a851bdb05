import { spawn } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { endOrphans, recordProcess } from "../../src/embedded/orphans.js";
import { startPostgres } from "../../src/embedded/postgres.js";
import { identify, isRunning, type ProcessIdentity } from "../../src/embedded/process-identity.js";
import { startRedis } from "../../src/embedded/redis.js";
import { endWithRun, makeTempDir } from "../support/test-file.js";

function bystander(): ProcessIdentity {
  const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: "ignore" });
  endWithRun(child.pid!);
  return identify(child.pid!) as ProcessIdentity;
}

test("servers and programs that a killed start left are ended, recorded or not", async () => {
  const dataDir = makeTempDir("orphans");
  const worker = bystander();
  recordProcess(dataDir, "worker", worker.pid);
  const postgres = await startPostgres({ dataDir, fsync: false, onSpawn: endWithRun });
  recordProcess(dataDir, "postgres", postgres.pid);
  // Killed before it could be written down: only its pid file tells.
  const redis = await startRedis({ dataDir, onSpawn: endWithRun });

  const said: string[] = [];
  expect(await endOrphans(dataDir, (line) => said.push(line))).toEqual(["worker", "redis", "postgres"]);
  expect(said).toHaveLength(1);
  await Promise.all([postgres.exited, redis.exited]);
  expect(isRunning(worker)).toBe(false);
  expect(existsSync(join(dataDir, "processes.json"))).toBe(false);
  expect(await endOrphans(dataDir, (line) => said.push(line))).toEqual([]);
});

test("a recorded pid, or one in a pid file, that names somebody else's process is left alone", async () => {
  const dataDir = makeTempDir("orphans");
  const innocent = bystander();
  const record = { api: { pid: innocent.pid, startedAt: "another time" } };
  writeFileSync(join(dataDir, "processes.json"), JSON.stringify(record));
  const redis = await startRedis({ dataDir, onSpawn: endWithRun });
  await redis.stop();
  writeFileSync(join(dataDir, "redis", "redis.pid"), String(innocent.pid));
  expect(await endOrphans(dataDir, () => {})).toEqual([]);
  expect(isRunning(innocent)).toBe(true);
});
