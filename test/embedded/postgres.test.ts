import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { type EmbeddedPostgres, startPostgres } from "../../src/embedded/postgres.js";
import { identify, isRunning, type ProcessIdentity } from "../../src/embedded/process-identity.js";
import { query } from "../support/sql.js";
import { endWithRun, makeTempDir } from "../support/test-file.js";

const dataDir = makeTempDir("postgres");
let server: EmbeddedPostgres | undefined;

async function start(port?: number): Promise<EmbeddedPostgres> {
  server = await startPostgres({
    dataDir,
    fsync: false,
    extraArgs: ["-c", "shared_buffers=16MB"],
    onSpawn: endWithRun,
    ...(port !== undefined && { port }),
  });
  return server;
}

const setting = async (url: string, name: string) => Object.values((await query(url, `SHOW ${name}`))[0] ?? {})[0];

afterAll(() => server?.stop("immediate"));

test("only this machine gets in, with the password, and what is committed survives stops and kills on one port", async () => {
  const first = await start();
  expect(new URL(first.url).hostname).toBe("127.0.0.1");
  expect(new URL(first.url).pathname).toBe("/sluice");
  expect(await setting(first.url, "listen_addresses")).toBe("127.0.0.1");
  expect(await setting(first.url, "unix_socket_directories")).toBe("");
  expect(await setting(first.url, "max_connections")).toBe("200");
  expect(await setting(first.url, "server_encoding")).toBe("UTF8");
  expect(await setting(first.url, "shared_buffers")).toBe("16MB");
  expect(await setting(first.url, "synchronous_commit")).toBe("on");
  const wrong = new URL(first.url);
  wrong.password = "wrong";
  await expect(query(wrong.href, "SELECT 1")).rejects.toThrow(/password authentication failed/);
  expect(statSync(join(dataDir, "secrets", "postgres-password")).mode & 0o777).toBe(0o600);

  await query(first.url, "CREATE TABLE kept (n int)");
  const ends: ((running: EmbeddedPostgres) => Promise<void>)[] = [
    (running) => running.stop(),
    (running) => running.stop("immediate"),
    (running) => running.kill(),
  ];
  for (const [index, end] of ends.entries()) {
    const running = server!;
    await query(running.url, `INSERT INTO kept VALUES (${index})`);
    const identity = identify(running.pid) as ProcessIdentity;
    await end(running);
    expect(isRunning(identity)).toBe(false);
    await expect(query(running.url, "SELECT 1")).rejects.toThrow();
    const again = await start(first.port);
    expect(again.url).toBe(first.url);
    expect(await query(again.url, "SELECT n FROM kept ORDER BY n")).toHaveLength(index + 1);
  }
});

test("a second server on the same directory is refused, and the first goes on", async () => {
  await expect(startPostgres({ dataDir, fsync: false })).rejects.toThrow(/already runs/);
  await query(server!.url, "SELECT 1");
});

test("a busy port is said at once, with the server's own words", async () => {
  const other = makeTempDir("postgres");
  await expect(startPostgres({ dataDir: other, fsync: false, port: server!.port })).rejects.toThrow(/could not bind/);
});

test("its password stands in no log and on no command line", async () => {
  const password = new URL(server!.url).password;
  expect(readFileSync(join(dataDir, "logs", "postgres.log"), "utf8")).not.toContain(password);
  if (process.platform === "linux")
    expect(readFileSync(`/proc/${server!.pid}/cmdline`, "utf8")).not.toContain(password);
});
