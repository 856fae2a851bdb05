import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const vitest = join(dirname(createRequire(import.meta.url).resolve("vitest/package.json")), "vitest.mjs");
const fixtures = fileURLToPath(new URL("./fixtures/summary", import.meta.url));

function run(...filter: string[]) {
  // Without the variables by which this run tells its workers who they are.
  const env = { PATH: process.env.PATH, HOME: process.env.HOME, NO_COLOR: "1" };
  return spawnSync(process.execPath, [vitest, "run", "--root", fixtures, ...filter], { encoding: "utf8", env });
}

it("the last line counts passed, failed and skipped, and a file that can't be run as a failure", () => {
  const { stdout, status } = run();
  expect(stdout.trimEnd().split("\n").at(-1)).toBe("3 passed, 2 failed, 1 skipped");
  expect(stdout.endsWith("skipped\n")).toBe(true);
  expect(status).toBe(1);
});

it("says nothing of skipped tests when there are none", () => {
  const { stdout, status } = run("clean");
  expect(stdout.trimEnd().split("\n").at(-1)).toBe("1 passed, 0 failed");
  expect(status).toBe(0);
});
