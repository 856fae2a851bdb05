import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { Redis } from "ioredis";
import { afterAll, expect, test } from "vitest";
import { identify, isRunning, type ProcessIdentity } from "../../src/embedded/process-identity.js";
import { type EmbeddedRedis, type RedisOptions, startRedis } from "../../src/embedded/redis.js";
import { endWithRun, makeTempDir } from "../support/test-file.js";

const servers: EmbeddedRedis[] = [];

async function start(options: RedisOptions): Promise<EmbeddedRedis> {
  const server = await startRedis({ ...options, onSpawn: endWithRun });
  servers.push(server);
  return server;
}

async function ask<T>(url: string, use: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis(url, { lazyConnect: true, enableReadyCheck: false, retryStrategy: () => null });
  client.on("error", () => {});
  try {
    await client.connect();
    return await use(client);
  } finally {
    client.disconnect();
  }
}

afterAll(() => Promise.all(servers.map((server) => server.kill())));

test("it keeps what it was told over a stop and a kill, on one port, and lets nobody in without the password", async () => {
  const dataDir = makeTempDir("redis");
  let server = await start({ dataDir });
  const { url, port } = server;
  await ask(url, async (client) => {
    const config = Object.fromEntries(
      await Promise.all(
        ["bind", "appendonly", "appendfsync", "maxmemory-policy", "save"].map((name) => client.config("GET", name)),
      ).then((answers) => answers as [string, string][]),
    );
    expect(config).toEqual({
      bind: "127.0.0.1",
      appendonly: "yes",
      appendfsync: "everysec",
      "maxmemory-policy": "noeviction",
      save: "",
    });
  });
  await expect(ask(`redis://127.0.0.1:${port}`, (client) => client.get("x"))).rejects.toThrow(/NOAUTH/);
  expect(statSync(join(dataDir, "secrets", "redis-password")).mode & 0o777).toBe(0o600);

  for (const end of ["stop", "kill"] as const) {
    await ask(url, (client) => client.set("last", end));
    const identity = identify(server.pid) as ProcessIdentity;
    await server[end]();
    expect(isRunning(identity)).toBe(false);
    server = await start({ dataDir, port });
    expect(server.url).toBe(url);
    expect(await ask(url, (client) => client.get("last"))).toBe(end);
  }
  const password = new URL(url).password;
  expect(readFileSync(join(dataDir, "logs", "redis.log"), "utf8")).not.toContain(password);
  if (process.platform === "linux") expect(readFileSync(`/proc/${server.pid}/cmdline`, "utf8")).not.toContain(password);
});

test("without the append-only file a restart forgets: what a fault test needs", async () => {
  const dataDir = makeTempDir("redis");
  const first = await start({ dataDir, appendonly: false });
  await ask(first.url, (client) => client.set("key", "value"));
  await first.stop();
  const second = await start({ dataDir, appendonly: false, port: first.port });
  expect(await ask(second.url, (client) => client.exists("key"))).toBe(0);
});

test("a busy port is said at once, with the server's own words", async () => {
  const { port } = await start({ dataDir: makeTempDir("redis") });
  await expect(start({ dataDir: makeTempDir("redis"), port })).rejects.toThrow(/Address already in use/);
});
