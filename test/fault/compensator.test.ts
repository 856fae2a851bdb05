/** What a worker does by the clock with requests that were given up, and with sales that are broken. */
import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { afterEach, beforeAll, describe, expect, test } from "vitest";
import { bury } from "../../src/operations/bury.js";
import { queuePrefix, saleKeys } from "../../src/redis/keys.js";
import type { Resources } from "../../src/resources.js";
import { openProcess } from "../operations/support.js";
import { settleAndCheck } from "../support/invariants.js";
import { scrapeWorker } from "../support/metrics.js";
import type { NodeProcess } from "../support/processes.js";
import { type Api, prepareSluice, reserve, type TestSale, type TestSluice } from "../support/sluice.js";
import { query } from "../support/sql.js";
import { subscribe } from "../support/subscriptions.js";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy.js";
import { atEndOfFile } from "../support/test-file.js";
import { waitFor } from "../support/wait.js";

const COMPENSATE_AFTER_MS = 1_000;
const TUNING = {
  compensateAfterMs: COMPENSATE_AFTER_MS,
  loops: { compensatorMs: 100, reconcilerMs: 200, queuesMs: 200 },
};

let sluice: TestSluice;
let api: Api;
let inside: Resources;
let redis: Redis;

beforeAll(async () => {
  sluice = await prepareSluice({ env: { SLUICE_TUNING: JSON.stringify(TUNING), METRICS_PORT: "0" } });
  [api, inside] = await Promise.all([sluice.startApi(), openProcess(sluice)]);
  redis = new Redis(sluice.redis.url);
  atEndOfFile(() => redis.disconnect());
});

/** A buyer who hears of his request, which waits in the queue and which no worker has seen yet. */
async function waitingBuyer(name: string, sale: TestSale) {
  const token = await sluice.token("buyer", name);
  const requestId = randomUUID();
  expect((await reserve(api, token, sale, { requestId })).data?.reserve.status).toBe("QUEUED");
  await waitFor(async () => (await inside.queues.states(sale.id, [requestId]))[0] === "waiting", { what: "its job" });
  const heard = subscribe<{ status: string; reasonCode: string | null }>("WebSocket", api, token, {
    query: `subscription ($s: ID!, $r: UUID!) {
      reservationUpdates(saleId: $s, requestId: $r) { status reasonCode }
    }`,
    variables: { s: sale.id, r: requestId },
  });
  expect(await heard.next()).toEqual({ status: "QUEUED", reasonCode: null });
  return { token, requestId, heard };
}

interface Letter {
  readonly stage: string;
  readonly status: string;
  readonly ageMs: number;
  readonly resolvedAt: Date | null;
}

async function letterOf(requestId: string): Promise<Letter> {
  const [letter] = await query<Letter & Record<string, unknown>>(
    sluice.databaseUrl,
    `SELECT stage, status::text AS status, "resolvedAt",
            extract(epoch FROM clock_timestamp() - "createdAt")::float8 * 1000 AS "ageMs"
     FROM dead_letters WHERE "requestId" = $1`,
    [requestId],
  );
  if (!letter) throw new Error("it has no dead letter");
  return letter;
}

const compensated = (requestId: string) =>
  waitFor(
    async () => {
      const letter = await letterOf(requestId);
      return letter.status === "COMPENSATED" && letter;
    },
    { what: "the dead letter to be compensated", timeoutMs: 20_000 },
  );

const FAILED = { status: "FAILED", reasonCode: "PROCESSING_FAILED" };

test("a request that no worker can read gets a dead letter, is compensated by itself, and its buyer hears of it", async () => {
  const sale = await sluice.createSale(api, { initial: [5] });
  const { token, requestId, heard } = await waitingBuyer("unread", sale);
  await redis.hset(`${queuePrefix(sale.id)}:orders:${requestId}`, "data", '{"v":2}');
  const worker = await sluice.startWorker();

  const { stage, ageMs } = await compensated(requestId);
  expect(stage).toBe("job");
  expect(ageMs).toBeGreaterThanOrEqual(COMPENSATE_AFTER_MS);
  expect(await heard.next()).toEqual(FAILED);
  expect(await heard.done).toEqual({ kind: "completed" });
  expect(
    await query(sluice.databaseUrl, `SELECT actor FROM audit_entries WHERE details->>'requestId' = $1`, [requestId]),
  ).toEqual([{ actor: "sluice" }]);
  expect((await reserve(api, token, sale)).data?.reserve.status).toBe("QUEUED");
  await settleAndCheck(sluice.databaseUrl, sluice.redis.url, sale.id);

  // The same worker checks the sales that it serves, and says what is broken.
  const found = async (invariant: string) =>
    (await scrapeWorker(worker)).value("sluice_invariant_findings", { sale: sale.id, invariant });
  await waitFor(async () => (await found("C")) === 0, { what: "the sale to be checked" });
  await redis.hset(saleKeys(sale.id).stock, sale.items[0]?.id ?? "", 99);
  await waitFor(async () => (await found("C")) === 1, { what: "the broken sale to be told of" });
  expect(await found("S")).toBe(0);
  await worker.waitForLine(new RegExp(`"saleId":"${sale.id}","invariant":"C".*an invariant is broken`));
  await end(worker);
});

describe("a dead letter is not compensated", () => {
  let proxy: TcpProxy;

  beforeAll(async () => {
    proxy = await startTcpProxy(sluice.databaseUrl);
  });

  afterEach(() => {
    sluice.redis.thaw();
    proxy.heal();
  });

  const outages: readonly [string, RegExp, () => void, () => void][] = [
    ["Redis is frozen", /Redis is away/, () => sluice.redis.freeze(), () => sluice.redis.thaw()],
    ["the database is away", /the database is away/, () => proxy.blackhole(), () => proxy.heal()],
  ];

  test.each(outages)("while %s, nor for as long after it as an operator has", async (_what, line, take, giveBack) => {
    const sale = await sluice.createSale(api, { initial: [5] });
    const { requestId, heard } = await waitingBuyer(`waits-${randomUUID()}`, sale);
    await inside.queues.remove(sale.id, [requestId]);
    const worker = await sluice.startWorker({ DATABASE_URL: proxy.url(sluice.databaseUrl) });
    take();
    await worker.waitForLine(line);
    await bury(inside, sale.id, [{ requestId, stage: "lost", lastError: "lost", attempts: 5 }]);

    await waitFor(async () => (await letterOf(requestId)).ageMs > 2 * COMPENSATE_AFTER_MS, { what: "time to pass" });
    expect(await letterOf(requestId)).toMatchObject({ status: "OPEN" });
    const [back] = await query<{ at: Date }>(sluice.databaseUrl, "SELECT clock_timestamp() AS at");
    giveBack();
    const { resolvedAt } = await compensated(requestId);
    expect(Number(resolvedAt) - Number(back?.at)).toBeGreaterThanOrEqual(COMPENSATE_AFTER_MS);
    expect(await heard.until(({ status }) => status === "FAILED", "FAILED", 40_000)).toEqual(FAILED);
    await settleAndCheck(sluice.databaseUrl, sluice.redis.url, sale.id);
    await end(worker);
  });
});

async function end(worker: NodeProcess): Promise<void> {
  worker.kill("SIGKILL");
  await worker.exited;
}
