import { Redis } from "ioredis";
import { beforeAll, expect, it } from "vitest";
import { startTestRedis, type TestRedis } from "./redis.js";
import { atEndOfFile } from "./test-file.js";
import { waitFor } from "./wait.js";

let redis: TestRedis;
let client: Redis;

beforeAll(async () => {
  redis = await startTestRedis();
  client = new Redis(redis.url, { commandTimeout: 250, retryStrategy: () => 20 });
  client.on("error", () => {});
  atEndOfFile(() => client.disconnect());
});

const read = async () => {
  const fresh = new Redis(redis.url);
  return await fresh.get("key").finally(() => fresh.disconnect());
};

it("is what Sluice asks of a Redis", async () => {
  const info = await client.info();
  expect(info).toContain("maxmemory_policy:noeviction");
  expect(info).toContain("aof_enabled:1");
});

it("answers nothing while it is frozen, and goes on afterwards", async () => {
  redis.freeze();
  await expect(client.set("key", "frozen")).rejects.toThrow("timed out");
  redis.thaw();
  expect(await client.ping()).toBe("PONG");
});

it("keeps through a kill what it has written to its file", async () => {
  await client.set("key", "kept");
  await waitFor(async () => (await client.info("persistence")).includes("aof_buffer_length:0\r\n"), {
    what: "the file to have it",
  });
  const before = redis.pid;
  await redis.kill();
  await redis.restart();
  expect(redis.pid).not.toBe(before);
  expect(await read()).toBe("kept");
});

it("can be set back, wiped and emptied", async () => {
  await client.set("key", "old");
  const backup = redis.backup();
  await client.set("key", "new");
  await redis.restart({ from: backup });
  expect(await read()).toBe("old");
  await redis.flushAll();
  expect(await read()).toBeNull();
  await redis.restart({ from: backup });
  await redis.restart({ wiped: true });
  expect(await read()).toBeNull();
});
