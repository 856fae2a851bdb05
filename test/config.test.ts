import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { loadConfig } from "../src/config.js";
import { makeTempDir } from "./support/test-file.js";

const GIVEN = {
  DATABASE_URL: "postgresql://x",
  REDIS_URL: "redis://x",
  JWT_SECRET: "a secret of the tests, longer than 32 characters",
};
const OLD = "sixteen letters!";
const NEW = "the one that comes after it";

/** A data directory in which `npm start` runs. */
function whereItRuns(): string {
  const dataDir = makeTempDir("running");
  const runtime = { databaseUrl: "postgresql://y", redisUrl: "redis://y", webhookSecret: OLD };
  writeFileSync(join(dataDir, "runtime.json"), JSON.stringify(runtime));
  return dataDir;
}

describe("PAYMENT_WEBHOOK_SECRET", () => {
  const secretsOf = (env: Record<string, string>) =>
    loadConfig({ ...GIVEN, SLUICE_DATA_DIR: makeTempDir("empty"), ...env }).PAYMENT_WEBHOOK_SECRET;

  it.each([
    [OLD, [OLD]],
    [`${NEW}, ${OLD}`, [NEW, OLD]],
    ["", undefined],
  ])("that is %j gives %j", (given, secrets) => {
    expect(secretsOf({ PAYMENT_WEBHOOK_SECRET: given })).toEqual(secrets);
  });

  it.each(["too short", `${NEW},short`, ",", " "])("that is %j is refused, and not repeated", (given) => {
    expect(() => secretsOf({ PAYMENT_WEBHOOK_SECRET: given })).toThrow(
      /^The configuration is not usable\. PAYMENT_WEBHOOK_SECRET: must have at least 16 characters, .*env\.example\.$/,
    );
  });

  it("is that of a running npm start where none is given, and never in production", () => {
    const SLUICE_DATA_DIR = whereItRuns();
    expect(secretsOf({ SLUICE_DATA_DIR })).toEqual([OLD]);
    expect(secretsOf({ SLUICE_DATA_DIR, PAYMENT_WEBHOOK_SECRET: NEW })).toEqual([NEW]);
    expect(secretsOf({ SLUICE_DATA_DIR, NODE_ENV: "production" })).toBeUndefined();
  });
});
