import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { planRedis } from "../../scripts/setup/redis.mjs";
import { atEndOfFile } from "../support/test-file.js";
import { waitFor } from "../support/wait.js";
import { finished, root, run } from "./run.js";

test.each<[NodeJS.Platform, number, string[], boolean, RegExp]>([
  ["linux", 0, ["apt-get"], true, /apt-get install redis-server/],
  ["linux", 1000, ["apt-get"], false, /sudo apt-get install redis-server/],
  ["linux", 0, [], false, /Redis 6\.2 or newer/],
  ["linux", 0, ["dnf"], false, /dnf install redis/],
  ["linux", 1000, ["apk"], false, /apk add redis/],
  ["linux", 1000, ["pacman"], false, /pacman -S redis/],
  ["darwin", 501, [], false, /brew install redis/],
])(
  "without redis-server, on %s as user %i with %j: installed without asking? %s",
  (platform, uid, programs, install, remedy) => {
    const plan = planRedis({ uid, platform, onPath: (program) => programs.includes(program) });
    expect(plan).toEqual({ install, remedy: expect.stringMatching(remedy) });
  },
);

test("an ordinary user without redis-server is told in a line what to type, before anything is downloaded", async (context) => {
  const ordinary = process.getuid?.() === 0 ? 65_534 : undefined;
  const clone = makeClone();
  const programs = join(clone, "programs");
  mkdirSync(programs);
  symlinkSync(process.execPath, join(programs, "node"));
  for (const program of ["npm", "sh"]) symlinkSync(find(program), join(programs, program));
  const env = { PATH: programs, HOME: clone };
  const user = ordinary === undefined ? {} : { uid: ordinary, gid: ordinary };
  const tried = spawnSync(join(programs, "npm"), ["--version"], { env, ...user });
  if (tried.status !== 0) context.skip("an ordinary user can't run this npm");

  const { code, stderr } = await finished("npm", ["start"], { cwd: clone, env, uid: ordinary });
  expect(stderr).toMatch(
    /^Sluice needs redis-server, and it is not on the PATH\. Install [^\n]*, or set REDIS_URL\.\n$/,
  );
  expect(code).toBe(1);
  expect(existsSync(join(clone, "node_modules"))).toBe(false);
});

test("a Ctrl-C waits for npm to have put its things away, lest it takes away those of the next start", async () => {
  const clone = makeClone();
  const env = pretendNpm(
    clone,
    `process.on("SIGTERM", () => setTimeout(() => { writeFileSync("put-away", ""); process.exit(1); }, 300));
    writeFileSync("begun", "");
    setInterval(() => {}, 1000);`,
  );
  const setup = run(process.execPath, ["scripts/setup.mjs"], { cwd: clone, env });
  await waitFor(() => existsSync(join(clone, "begun")), { what: "npm to begin" });
  process.kill(setup.pid, "SIGINT");
  expect((await setup.exited).code).toBe(130);
  expect(existsSync(join(clone, "put-away"))).toBe(true);
  expect(existsSync(join(clone, ".data"))).toBe(false);
  expect(setup.stderr).toBe("Installing the dependencies (once) …\n");
});

test("dependencies that are not all there are no reason to go on, this time or the next", async () => {
  const clone = makeClone();
  // Everything is on the list, and nothing in its place.
  const env = pretendNpm(
    clone,
    `mkdirSync("node_modules", { recursive: true });
    writeFileSync("node_modules/.package-lock.json", readFileSync("package-lock.json"));`,
  );
  for (const _ of ["this time", "the next"]) {
    const { code, stderr } = await finished(process.execPath, ["scripts/setup.mjs"], { cwd: clone, env });
    expect(stderr).toMatch(
      /^Installing the dependencies \(once\) …\nThe dependencies are not complete: .*rm -rf node_modules\n$/,
    );
    expect(code).toBe(1);
  }
});

/** What the setup looks at of a fresh clone, in a folder that also an ordinary user may enter. */
function makeClone(): string {
  const clone = mkdtempSync(join(tmpdir(), "sluice-clone-"));
  chmodSync(clone, 0o755);
  atEndOfFile(() => rmSync(clone, { recursive: true, force: true }));
  for (const path of ["package.json", "package-lock.json", "prisma/schema.prisma", "scripts"]) {
    cpSync(join(root, path), join(clone, path), { recursive: true });
  }
  return clone;
}

/** The environment of `npm run build`, with another npm. */
function pretendNpm(clone: string, program: string): Record<string, string> {
  const path = join(clone, "npm-cli.js");
  writeFileSync(path, `import { mkdirSync, readFileSync, writeFileSync } from "node:fs";\n${program}\n`);
  return { npm_execpath: path, npm_lifecycle_event: "prebuild" };
}

function find(program: string): string {
  return execFileSync("sh", ["-c", `command -v ${program}`], { encoding: "utf8" }).trim();
}
