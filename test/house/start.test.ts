import { randomUUID } from "node:crypto";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { decodeJwt } from "jose";
import { beforeAll, describe, expect, test } from "vitest";
import { signWebhook } from "../../src/admission/webhook-signature.js";
import { readRuntimeFile } from "../../src/config.js";
import { findFreePort } from "../../src/embedded/ports.js";
import { isRunning } from "../../src/embedded/process-identity.js";
import { createTestDatabase } from "../support/database.js";
import { reportOf, sendWebhook } from "../support/payments.js";
import { startTestRedis } from "../support/redis.js";
import { query } from "../support/sql.js";
import { makeTempDir } from "../support/test-file.js";
import { waitFor } from "../support/wait.js";
import { ask, type House, npmStart, printedRequest } from "./npm-start.js";
import { commandLineOf, finished } from "./run.js";

/** A single line, and nothing after it. */
const oneLine = (part: RegExp) => new RegExp(`^[^\\n]*${part.source}[^\\n]*\\n$`);

/** Sends what is printed for a first purchase, also as another buyer. Resolves with the request's id when there is an order. */
async function buyAsPrinted(house: House, token = house.tokens.buyer): Promise<string> {
  const request = printedRequest(house.banner, "Reserve one unit");
  request.headers.set("authorization", `Bearer ${token}`);
  const { data } = (await (await fetch(request)).json()) as {
    data: { reserve: { status: string; reservation: { requestId: string } } };
  };
  expect(data.reserve.status).toBe("QUEUED");
  const { requestId } = data.reserve.reservation;
  await waitFor(async () => (await statusOf(house, requestId, token)) === "SUCCESS", { what: "the order" });
  return requestId;
}

async function statusOf(
  { url, saleId, tokens }: House,
  requestId: string,
  token = tokens.buyer,
): Promise<string | undefined> {
  const { data } = await ask<{ reservation: { status: string } | null }>(
    url,
    token ?? null,
    "query ($saleId: ID!, $requestId: UUID!) { reservation(saleId: $saleId, requestId: $requestId) { status } }",
    { saleId, requestId },
  );
  return data?.reservation?.status;
}

async function remaining({ url, saleId }: House): Promise<number[] | undefined> {
  const { data } = await ask<{ sale: { items: { remaining: number }[] } }>(
    url,
    null,
    "query ($id: ID!) { sale(id: $id) { items { remaining } } }",
    { id: saleId },
  );
  return data?.sale.items.map((item) => item.remaining);
}

/** Everything is gone, and says so: nothing that a later start or command could take for running. */
async function expectGone(house: House, dataDir: string): Promise<void> {
  for (const [name, process] of Object.entries(house.processes))
    expect([name, isRunning(process)]).toEqual([name, false]);
  expect(isRunning(house.supervisor)).toBe(false);
  for (const file of ["runtime.json", "instance.lock", "processes.json"]) {
    expect([file, existsSync(join(dataDir, file))]).toEqual([file, false]);
  }
  await expect(fetch(`${house.url}/health`)).rejects.toThrow();
}

describe("npm start, with nothing set up", () => {
  const dataDir = makeTempDir("start");
  let env: { SLUICE_DATA_DIR: string; PORT: string };
  let house: House;
  let bought: string;

  const tokenFor = (userId: string) => finished("npm", ["run", "--silent", "token", "--", "buyer", userId], { env });

  beforeAll(async () => {
    env = { SLUICE_DATA_DIR: dataDir, PORT: String(await findFreePort()) };
    house = await npmStart(env);
  });

  test("what it prints is enough for a first purchase, and true", async () => {
    expect(house.url).toBe(`http://127.0.0.1:${env.PORT}`);
    expect(house.itemIds).toHaveLength(2);
    expect(Object.keys(house.tokens)).toEqual(["buyer", "operator", "payments"]);
    for (const [role, token] of Object.entries(house.tokens)) {
      expect(decodeJwt(token).role).toBe(role);
      expect((await ask(house.url, token, "{ serverTime }")).errors).toBeUndefined();
    }
    expect((await ask(house.url, "ey.not.ours", "{ serverTime }")).errors?.[0]?.extensions.code).toBe(
      "UNAUTHENTICATED",
    );
    for (const path of ["health", "ready", "metrics"]) {
      const [, printed = ""] = new RegExp(`^  ${path} +(\\S+)`, "m").exec(house.banner) ?? [];
      const headers = { authorization: `Bearer ${house.tokens.operator}` };
      expect([path, (await fetch(printed, { headers })).status]).toEqual([path, 200]);
    }
    expect(house.banner).toMatch(/^ {2}metrics .*operator's token/m);
    const page = await fetch(`${house.url}/graphql`, { headers: { accept: "text/html" } });
    expect([page.status, await page.text()]).toEqual([200, expect.stringMatching(/graphiql/i)]);

    expect(printedRequest(house.banner, "Reserve one unit").headers.get("authorization")).toBe(
      `Bearer ${house.tokens.buyer}`,
    );
    bought = await buyAsPrinted(house);
    const watching = await fetch(printedRequest(house.banner, "Watch the stock (server-sent events)"));
    let watched = "";
    // The first value comes at once; an endless stream without it ends with the test's time.
    for await (const chunk of watching.body!.pipeThrough(new TextDecoderStream())) {
      watched += chunk;
      if (watched.includes("event: next") && watched.endsWith("\n\n")) break;
    }
    expect(watched).toContain('"remaining":99');
  });

  test("it takes payments by the webhook, with a secret that it made and the commands find", async () => {
    const runtime = readRuntimeFile(dataDir);
    const body = JSON.stringify(reportOf(`${house.saleId}.${randomUUID()}`));
    const signature = signWebhook(runtime?.webhookSecret ?? "", body, new Date());
    expect(await sendWebhook(house, body, signature)).toMatchObject({ status: 200, body: { outcome: "REFUND_DUE" } });
  });

  test("the API, the worker and the servers are processes of their own", () => {
    expect(Object.keys(house.processes).sort()).toEqual(["api", "postgres", "redis", "worker"]);
    const pids = [house.npm.pid, house.supervisor.pid, ...Object.values(house.processes).map(({ pid }) => pid)];
    expect(new Set(pids).size).toBe(6);
    expect(commandLineOf(house.processes.api!.pid)).toContain("src/main.ts");
    expect(commandLineOf(house.processes.worker!.pid)).toContain("workers/main.ts");
    for (const process of Object.values(house.processes)) expect(isRunning(process)).toBe(true);
  });

  test("npm run --silent token prints one line, a token that the API takes", async () => {
    const printed = await tokenFor("bob");
    expect(printed).toMatchObject({ code: 0, stderr: "", stdout: expect.stringMatching(/^ey\S+\n$/) });
    const token = printed.stdout.trim();
    expect(decodeJwt(token)).toMatchObject({ sub: "bob", role: "buyer" });
    expect(await statusOf(house, await buyAsPrinted(house, token), token)).toBe("SUCCESS");
  });

  test("a second start, a reset and a start on the same port each refuse in a line, and the first goes on selling", async () => {
    const other = makeTempDir("start");
    const [second, reset, samePort] = await Promise.all([
      finished("npm", ["start"], { env: { ...env, PORT: String(await findFreePort()) } }),
      finished("npm", ["run", "reset"], { env }),
      finished("npm", ["start"], { env: { ...env, SLUICE_DATA_DIR: other } }),
    ]);
    for (const { code, stderr } of [second, reset]) {
      expect(stderr).toMatch(oneLine(/Sluice already runs at /));
      expect(stderr).toContain(`${house.url} (process ${house.supervisor.pid})`);
      expect(code).toBe(1);
    }
    expect(samePort.stderr).toMatch(oneLine(/Port \d+ .*is in use.*PORT=\d+ npm start/));
    expect(samePort.code).toBe(1);
    expect(readdirSync(other)).toEqual([]);

    for (const process of Object.values(house.processes)) expect(isRunning(process)).toBe(true);
    await buyAsPrinted(house, (await tokenFor("carol")).stdout.trim());
    expect(await remaining(house)).toEqual([97, 5_000]);
  });

  test("Ctrl-C ends everything, and the next start goes on with the same sale and its orders", async () => {
    process.kill(-house.npm.pid, "SIGINT");
    expect(await house.npm.exited).toEqual({ code: 0, signal: null });
    expect(house.npm.stderr).toBe("");
    await expectGone(house, dataDir);

    const { saleId } = house;
    house = await npmStart(env);
    expect(house.saleId).toBe(saleId);
    expect(house.banner).toContain("97 left");
    expect(await statusOf(house, bought)).toBe("SUCCESS");
  });

  test("after a kill -9 of all that a terminal knows of, the next start simply works", async () => {
    const killed = house;
    process.kill(-killed.npm.pid, "SIGKILL");
    await killed.npm.exited;

    house = await npmStart(env);
    expect(house.saleId).toBe(killed.saleId);
    for (const process of Object.values(killed.processes)) expect(isRunning(process)).toBe(false);
    expect(await statusOf(house, bought)).toBe("SUCCESS");
    await buyAsPrinted(house, (await tokenFor("dave")).stdout.trim());
    expect(await remaining(house)).toEqual([96, 5_000]);
  });

  test("a SIGTERM to npm alone ends everything as well, and npm run reset clears it", async () => {
    process.kill(house.npm.pid, "SIGTERM");
    await house.npm.exited;
    await waitFor(() => !isRunning(house.supervisor), { what: "the end of the start" });
    await expectGone(house, dataDir);
    const reset = await finished("npm", ["run", "reset"], { env });
    expect(reset).toMatchObject({ code: 0, stderr: "" });
    expect(existsSync(dataDir)).toBe(false);
  });
});

test("with DATABASE_URL and REDIS_URL it starts no server of its own and leaves those running, with what was sold", async () => {
  const [redis, database] = await Promise.all([startTestRedis(), createTestDatabase()]);
  const dataDir = makeTempDir("start");
  const env = {
    SLUICE_DATA_DIR: dataDir,
    PORT: "0",
    DATABASE_URL: database.url,
    REDIS_URL: redis.url,
  };
  const house = await npmStart(env);
  expect(Object.keys(house.processes).sort()).toEqual(["api", "worker"]);
  expect(house.npm.stdout).not.toMatch(/Starting (PostgreSQL|Redis)/);
  await buyAsPrinted(house);
  process.kill(-house.npm.pid, "SIGINT");
  expect((await house.npm.exited).code).toBe(0);
  await expectGone(house, dataDir);
  expect(readdirSync(dataDir).sort()).toEqual(["demo-sale.json", "logs", "page", "secrets"]);
  expect(await query(database.url, "SELECT 1 FROM orders")).toHaveLength(1);

  // In production it says where it is, and nothing that would let in whoever reads its log.
  const production = await npmStart({ ...env, NODE_ENV: "production" });
  expect(production.banner).toContain(`${production.url}/graphql`);
  expect(production.npm.stdout).not.toMatch(/Demo sale|eyJ|curl/);
  expect(await query(database.url, "SELECT 1 FROM sales")).toHaveLength(1);
  process.kill(-production.npm.pid, "SIGINT");
  expect((await production.npm.exited).code).toBe(0);
});

test.each([
  [{ PORT: "abc" }, /PORT/],
  [{ DATABASE_URL: "mysql://root@localhost/sluice" }, /DATABASE_URL: must be a postgresql:\/\/ URL/],
  [{ JWT_SECRET: "too short" }, /JWT_SECRET: must have at least 32 characters/],
  [{ SLUICE_DATA_DIR: "package.json" }, /The data directory .* can't be written to/],
])("with %j it says in a line what is wrong, and starts nothing", async (setting, reason) => {
  const dataDir = makeTempDir("start");
  const { code, stdout, stderr } = await finished("npm", ["start"], { env: { SLUICE_DATA_DIR: dataDir, ...setting } });
  expect(stderr).toMatch(oneLine(reason));
  expect(stdout).not.toMatch(/Starting/);
  expect(code).toBe(1);
  expect(readdirSync(dataDir)).toEqual([]);
});
