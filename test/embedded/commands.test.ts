import { spawn } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { jwtVerify } from "jose";
import { expect, test } from "vitest";
import { takeInstanceLock } from "../../src/embedded/instance-lock.js";
import { makeTempDir } from "../support/test-file.js";

const secret = "a secret of more than thirty-two characters";

/** Runs a command as its npm script does, without the caller's own settings. */
function run(command: string, args: string[], env: Record<string, string>) {
  return new Promise<{ code: number | null; stdout: string; stderr: string }>((resolve) => {
    const child = spawn(process.execPath, ["--import", "tsx", `src/cli/${command}.ts`, ...args], {
      env: { PATH: process.env.PATH, ...env },
    });
    let stdout = "";
    let stderr = "";
    child.stdout.on("data", (chunk) => (stdout += chunk));
    child.stderr.on("data", (chunk) => (stderr += chunk));
    child.on("close", (code) => resolve({ code, stdout, stderr }));
  });
}

test("token prints one line, a token of this role and user, with the secret of what runs", async () => {
  const dataDir = makeTempDir("token");
  const runtime = { databaseUrl: "postgresql://x", redisUrl: "redis://x", jwtSecret: secret };
  writeFileSync(join(dataDir, "runtime.json"), JSON.stringify(runtime));
  for (const env of [{ SLUICE_DATA_DIR: dataDir }, { SLUICE_DATA_DIR: makeTempDir("empty"), JWT_SECRET: secret }]) {
    const result = await run("token", ["buyer", "alice", "--expires-in", "60"], env);
    expect(result).toMatchObject({ code: 0, stderr: "" });
    expect(result.stdout).toMatch(/^\S+\n$/);
    const options = { issuer: "sluice", audience: "sluice", algorithms: ["HS256"] };
    const { payload } = await jwtVerify(result.stdout.trim(), new TextEncoder().encode(secret), options);
    expect(payload).toMatchObject({ sub: "alice", role: "buyer" });
    expect(payload.exp! - payload.iat!).toBe(60);
  }
});

test.each([
  [[]],
  [["buyer"]],
  [["admin", "alice"]],
  [["buyer", "alice", "bob"]],
  [["buyer", "alice", "--expires-in", "soon"]],
  [["buyer", "alice", "--expires-in", "0"]],
  [["buyer", "alice", "--nonsense"]],
])("token %j prints its usage in one line and nothing else", async (args) => {
  const result = await run("token", args, { SLUICE_DATA_DIR: makeTempDir("empty"), JWT_SECRET: secret });
  expect(result).toMatchObject({ code: 1, stdout: "" });
  expect(result.stderr).toMatch(/^Usage: npm run --silent token -- <buyer\|operator\|payments> <userId>[^\n]*\n$/);
});

test("without anything running, token and migrate say in one line what to do", async () => {
  const env = { SLUICE_DATA_DIR: makeTempDir("empty") };
  for (const [command, remedy] of [
    ["token", "npm start"],
    ["migrate", "DATABASE_URL"],
  ] as const) {
    const result = await run(command, ["buyer", "alice"], env);
    expect(result).toMatchObject({ code: 1, stdout: "" });
    expect(result.stderr).toMatch(/^[^\n]+\n$/);
    expect(result.stderr).toContain(remedy);
  }
});

test("reset clears what is ours, never beside a running instance, never what is somebody else's", async () => {
  const dataDir = makeTempDir("reset");
  for (const name of ["postgres", "redis", "logs", "secrets", "photographs"]) mkdirSync(join(dataDir, name));
  writeFileSync(join(dataDir, "runtime.json"), "{}");
  const lock = await takeInstanceLock(dataDir, { purpose: "Sluice" });
  const refused = await run("reset", [], { SLUICE_DATA_DIR: dataDir });
  expect(refused).toMatchObject({ code: 1, stdout: "" });
  expect(refused.stderr).toMatch(/^Sluice already runs[^\n]+\n$/);
  expect(existsSync(join(dataDir, "postgres"))).toBe(true);
  lock.release();

  expect(await run("reset", [], { SLUICE_DATA_DIR: dataDir })).toMatchObject({ code: 0, stderr: "" });
  for (const name of ["postgres", "redis", "logs", "secrets", "runtime.json", "instance.lock"]) {
    expect(existsSync(join(dataDir, name))).toBe(false);
  }
  expect(existsSync(join(dataDir, "photographs"))).toBe(true);
});
