import { join } from "node:path";
import { expect, test } from "vitest";
import { spawnDetached, stopWithin } from "../../src/embedded/spawn.js";
import { type Service, supervise } from "../../src/embedded/supervisor.js";
import { endWithRun, makeTempDir } from "../support/test-file.js";
import { waitFor } from "../support/wait.js";

const policy = { quickMs: 60_000, maxQuickDeaths: 5, firstPauseMs: 1 };

/** A service of this program, counting its starts. */
function serviceOf(program: string): Service & { pids: number[] } {
  const directory = makeTempDir("supervisor");
  const logPath = join(directory, "log");
  const pids: number[] = [];
  return {
    name: "it",
    logPath,
    pids,
    start: async () => {
      const spawned = await spawnDetached({
        command: process.execPath,
        args: ["-e", program],
        cwd: directory,
        logPath,
      });
      endWithRun(spawned.pid);
      pids.push(spawned.pid);
      return { ...spawned, stop: (hurry) => stopWithin(spawned, "SIGTERM", 10_000, hurry) };
    },
  };
}

test("what dies is started again, and not after it was stopped", async () => {
  const service = serviceOf("setInterval(() => {}, 1000)");
  const said: string[] = [];
  const supervised = await supervise(service, (line) => said.push(line), policy);
  process.kill(service.pids[0]!, "SIGKILL");
  await waitFor(() => service.pids.length === 2, { what: "the second start" });
  await waitFor(() => said.length === 2, { what: "it being said" });
  expect(said[0]).toMatch(/^it was ended by SIGKILL; starting it again/);
  await supervised.stop();
  expect(service.pids).toHaveLength(2);
});

test("what dies at once, five times, is given up, with the end of its log", async () => {
  const service = serviceOf("console.error('no way'); process.exitCode = 7");
  const supervised = await supervise(service, () => {}, policy);
  expect((await supervised.gaveUp).message).toMatch(/^it ended with code 7, 5 times within moments.*no way$/s);
  expect(service.pids).toHaveLength(5);
  await supervised.stop();
});

test("a hurry kills what doesn't finish", async () => {
  const service = serviceOf("process.on('SIGTERM', () => {}); setInterval(() => {}, 1000); console.log('up')");
  const supervised = await supervise(service, () => {}, policy);
  const hurry = new AbortController();
  const stopped = supervised.stop(hurry.signal);
  hurry.abort();
  await stopped;
});
