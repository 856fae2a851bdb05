import { describe, expect, it } from "vitest";
import { findFreePort } from "../../src/embedded/ports.js";
import { createTestDatabase } from "../support/database.js";
import { spawnNode } from "../support/processes.js";
import { startTestRedis } from "../support/redis.js";
import { makeTempDir } from "../support/test-file.js";

const JWT_SECRET = "a secret of the tests, longer than 32 characters";

/** What a program says before it refuses to run. */
async function refusalOf(entry: string, env: Record<string, string>): Promise<string[]> {
  const program = await spawnNode(entry, { JWT_SECRET, PORT: "0", ...env });
  expect((await program.exited).code).toBe(1);
  return program.lines.filter((line) => !line.startsWith("{"));
}

describe.each(["src/main.ts", "workers/main.ts"])("%s refuses, in one line with the remedy,", (entry) => {
  it("a database that was not migrated", async () => {
    const [redis, database] = await Promise.all([startTestRedis(), createTestDatabase({ empty: true })]);
    expect(await refusalOf(entry, { REDIS_URL: redis.url, DATABASE_URL: database.url })).toEqual([
      expect.stringMatching(/^The database is not up to date: it lacks \w+.*\. Run: npm run migrate$/),
    ]);
  });

  it("a Redis that evicts", async () => {
    const [redis, database] = await Promise.all([
      startTestRedis({ extraArgs: ["--maxmemory-policy", "allkeys-lru"] }),
      createTestDatabase(),
    ]);
    expect(await refusalOf(entry, { REDIS_URL: redis.url, DATABASE_URL: database.url })).toEqual([
      expect.stringMatching(/^Redis evicts keys .*allkeys-lru.*Set it to noeviction\.$/),
    ]);
  });

  it("in production, a Redis without an append-only file", async () => {
    const [redis, database] = await Promise.all([startTestRedis({ appendonly: false }), createTestDatabase()]);
    const env = { REDIS_URL: redis.url, DATABASE_URL: database.url };
    expect(await refusalOf(entry, { ...env, NODE_ENV: "production" })).toEqual([
      expect.stringMatching(/Set appendonly yes\.$/),
    ]);
  });
});

describe("npm start refuses, in one line with the remedy,", () => {
  it("a Redis that was given and doesn't answer", async () => {
    const database = await createTestDatabase();
    const lines = await refusalOf("src/embedded/main.ts", {
      SLUICE_DATA_DIR: makeTempDir("data"),
      PORT: String(await findFreePort()),
      DATABASE_URL: database.url,
      REDIS_URL: `redis://127.0.0.1:${await findFreePort()}`,
    });
    expect(lines.at(-1)).toMatch(/^Redis can't be used: .*Is REDIS_URL right, and does the server run\?$/);
    expect(lines).toHaveLength(2);
  });
});
