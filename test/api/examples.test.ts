import { readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Redis } from "ioredis";
import pg from "pg";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { settleAndCheck } from "../support/invariants.js";
import { type NodeProcess, spawnNode } from "../support/processes.js";
import { type Api, prepareSluice, reserve, type TestSluice } from "../support/sluice.js";
import { query } from "../support/sql.js";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy.js";
import { makeTempDir } from "../support/test-file.js";
import { waitFor } from "../support/wait.js";

const root = fileURLToPath(new URL("../..", import.meta.url));

const TIMEOUT_MS = 120_000;
/** For a process to start where others want the processors too. */
const START_MS = 60_000;

let sluice: TestSluice;
let api: Api;
let worker: NodeProcess;
let proxy: TcpProxy;
let redis: Redis;

beforeAll(async () => {
  sluice = await prepareSluice();
  // Patient, so that an answer can be held back for as long as a test needs.
  const patient = { deadlines: { requestMs: 60_000, journalMs: 50_000 }, sql: { lockMs: 40_000, statementMs: 45_000 } };
  api = await sluice.startApi({ SLUICE_TUNING: JSON.stringify(patient) });
  worker = await sluice.startWorker();
  proxy = await startTcpProxy(api.url);
  redis = new Redis(sluice.redis.url);
  return () => redis.disconnect();
}, TIMEOUT_MS);

it("the client of the README buys as it is copied, and ends by itself", { timeout: TIMEOUT_MS }, async () => {
  const sale = await sluice.createSale(api);
  const [, printed = ""] = /```ts\n(.*?)```/s.exec(readFileSync(join(root, "README.md"), "utf8")) ?? [];
  const filled = { "http://127.0.0.1:4000": api.url, "<sale>": sale.id, "<item>": sale.items[0]?.id ?? "" };
  const folder = makeTempDir("copied");
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  writeFileSync(
    join(folder, "buy.mts"),
    Object.entries(filled).reduce((code, [placeholder, value]) => code.replace(placeholder, value), printed),
  );
  const client = await spawnNode(join(folder, "buy.mts"), { SLUICE_TOKEN: await sluice.token("buyer", "reader") });
  expect(await client.exited).toEqual({ code: 0, signal: null });
  expect(client.lines.join("\n")).toMatch(/QUEUED.*SUCCESS.*payBy/s);
  expect(await ordersOf("reader")).toHaveLength(1);
});

describe.each(["urql", "apollo", "plain"])("examples/%s.ts", { timeout: TIMEOUT_MS }, (name) => {
  afterEach(() => worker.kill("SIGCONT"));

  /** Starts it as its README says. */
  const run = async (buyer: string, { url = api.url, args = [] as string[] } = {}) => {
    const env = { SLUICE_URL: url, SLUICE_TOKEN: await sluice.token("buyer", buyer) };
    return spawnNode(`examples/${name}.ts`, env, args);
  };

  it("buys from the newest open sale, and ends with 0 when there is an order; the next run is refused", async () => {
    const buyer = `${name}-ann`;
    await sluice.createSale(api);
    const sale = await sluice.createSale(api, { initial: [0, 5] });
    const first = await run(buyer);
    await first.waitForLine(/accepted|^QUEUED|^SUCCESS/, START_MS);
    // Sooner than it asks again for want of news: the subscription has told it.
    const [, orderId] = await first.waitForLine(/^SUCCESS (\S+)$/);
    expect(await first.exited).toEqual({ code: 0, signal: null });
    expect(await ordersOf(buyer)).toEqual([{ id: orderId, itemId: sale.items[1]?.id, quantity: 1 }]);

    const second = await run(buyer);
    expect(await second.exited).toEqual({ code: 1, signal: null });
    expect(second.lines).toEqual([expect.stringMatching(/already have/)]);
    await settleAndCheck(sluice.databaseUrl, sluice.redis.url, sale.id);
  });

  it("ends with 1 and says so where the sale is sold out", async () => {
    const sale = await sluice.createSale(api, { initial: [1] });
    await reserve(api, await sluice.token("buyer", "bob"), sale);
    const example = await run(`${name}-cem`, { args: [sale.id] });
    expect(await example.exited).toEqual({ code: 1, signal: null });
    expect(example.lines).toEqual([expect.stringMatching(/sold out/)]);
    expect(await ordersOf(`${name}-cem`)).toEqual([]);
  });

  it("sends the same request again where the connection was cut before the answer: one order of one unit", async () => {
    const buyer = `${name}-dora`;
    const sale = await sluice.createSale(api);
    worker.kill("SIGSTOP");
    const giveBack = await holdFence(sale.id);
    const example = await run(buyer, { url: proxy.url(api.url), args: [sale.id] });
    const accepted = () => redis.hexists(`sluice:{${sale.id}}:holders`, buyer);
    await waitFor(async () => (await accepted()) === 1, { what: "the request to be accepted", timeoutMs: START_MS });
    proxy.cut();
    await giveBack();
    // More than five seconds: by then the subscription has been refused a connection too.
    const failures = () => example.lines.filter((line) => /fetch failed|no answer/.test(line)).length;
    await waitFor(() => failures() > 5, { what: "sends to fail", timeoutMs: START_MS });
    proxy.heal();
    // What `reserve` answers: to be heard only from another send. The order comes after that.
    await example.waitForLine(/^Your request is accepted/);
    worker.kill("SIGCONT");

    // The subscription is back too.
    await example.waitForLine(/^SUCCESS/);
    expect(await example.exited).toEqual({ code: 0, signal: null });
    expect(await ordersOf(buyer)).toEqual([expect.objectContaining({ itemId: sale.items[0]?.id, quantity: 1 })]);
    expect(await query(sluice.databaseUrl, `SELECT 1 FROM requests WHERE "buyerId" = $1`, [buyer])).toHaveLength(1);
    await settleAndCheck(sluice.databaseUrl, sluice.redis.url, sale.id);
  });
});

/** Keeps accepted requests of a sale from being journaled, and so their answers from being sent, until it is called. */
async function holdFence(saleId: string): Promise<() => Promise<void>> {
  const client = new pg.Client(sluice.databaseUrl);
  await client.connect();
  await client.query("SELECT pg_advisory_lock(hashtextextended('sluice:fence:' || $1, 0))", [saleId]);
  return () => client.end();
}

function ordersOf(buyer: string) {
  return query(
    sluice.databaseUrl,
    `SELECT "saleId" || '.' || "requestId" AS id, "itemId", quantity FROM orders WHERE "buyerId" = $1`,
    [buyer],
  );
}
