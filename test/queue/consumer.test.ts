import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { consumeOrders, type JobResult, type OrderConsumer } from "../../src/queue/consumer.js";
import { type JobFailure, MISNAMED, UNREADABLE } from "../../src/queue/job-failure.js";
import { WRITE_ORDER } from "../../src/queue/jobs.js";
import { createOrderQueues, type OrderQueues } from "../../src/queue/queues.js";
import { queuePrefix } from "../../src/redis/keys.js";
import { connectRedis } from "../../src/redis/link.js";
import { startTestRedis } from "../support/redis.js";
import { atEndOfFile } from "../support/test-file.js";
import { waitFor } from "../support/wait.js";

let queues: OrderQueues;
let client: Redis;
let blocking: Redis;
let saleId: string;
let numbers = 0;

beforeAll(async () => {
  const { url } = await startTestRedis();
  const link = connectRedis({ url, name: "queues", commandTimeoutMs: 5_000, onError: () => {} });
  queues = createOrderQueues(link, () => {});
  client = new Redis(url);
  blocking = new Redis(url, { maxRetriesPerRequest: null });
  atEndOfFile(async () => {
    await link.close();
    client.disconnect();
    blocking.disconnect();
  });
  await link.whenUsable(5_000);
});

beforeEach(() => {
  saleId = `sale-${++numbers}`;
});

/** Serves the sale's queue. What has died is in `dead`, by job id. */
function consume(handle: (requestId: string) => Promise<JobResult>): {
  consumer: OrderConsumer;
  dead: Map<string, JobFailure>;
} {
  const dead = new Map<string, JobFailure>();
  const consumer = consumeOrders({
    saleId,
    connection: blocking,
    concurrency: 10,
    jobs: { lockMs: 1_000, stalledMs: 500, takeovers: 3 },
    handle,
    onDead: (jobId, failure) => dead.set(jobId, failure),
    onError: () => {},
  });
  atEndOfFile(() => consumer.close(1_000));
  return { consumer, dead };
}

/** A job on its last attempt. */
async function addLast(requestId: string): Promise<void> {
  await queues.open(saleId).add(WRITE_ORDER.name, { v: 1, saleId, requestId }, { jobId: requestId, attempts: 1 });
}

describe("a handler that throws", () => {
  it.each([
    ["a string", "out of cheese", "out of cheese"],
    ["nothing", undefined, "undefined"],
    ["null", null, "null"],
    ["an object", { out: "of cheese" }, "{ out: 'of cheese' }"],
    ["an error", new Error("out of cheese"), "out of cheese"],
    ["an error without a message", new Error(), "It failed without a reason."],
  ])("%s fails that job, and no other", async (_what, thrown, error) => {
    const [bad, good] = [randomUUID(), randomUUID()];
    const handled: string[] = [];
    const { dead } = consume((requestId) => {
      if (requestId === bad) return Promise.reject(thrown);
      handled.push(requestId);
      return Promise.resolve({ kind: "done" });
    });
    await addLast(bad);
    await waitFor(() => dead.has(bad), { what: "it to be given up" });
    expect(dead.get(bad)).toEqual({ stage: "write", error, attempts: 1 });
    await queues.add(saleId, [good]);
    await waitFor(() => handled.includes(good), { what: "the next one" });
    expect(await queues.failures(saleId, [bad])).toEqual([dead.get(bad)]);
  });
});

it("a job that is put off is handled again, also on its last attempt, and as often as it takes", async () => {
  const requestId = randomUUID();
  let asked = 0;
  const { dead } = consume(async () => {
    asked += 1;
    return asked > 3 ? { kind: "done" } : { kind: "put_off", why: "a store is away" };
  });
  await addLast(requestId);
  await waitFor(() => asked > 3, { what: "the fourth time", timeoutMs: 30_000 });
  await waitFor(async () => (await queues.states(saleId, [requestId]))[0] === "unknown", { what: "its end" });
  expect([asked, dead.size]).toEqual([4, 0]);
});

describe("a job that can't be read", () => {
  it.each([
    ["no JSON", "{", UNREADABLE],
    ["nothing", "", UNREADABLE],
    ["null", "null", UNREADABLE],
    ["another version", '{"v":2}', UNREADABLE],
    ["another request", null, MISNAMED],
  ])("since it holds %s, is given up at once, and those beside it are handled", async (_what, data, error) => {
    const requestIds = Array.from({ length: 5 }, () => randomUUID());
    const [bad = "", ...good] = requestIds;
    await queues.add(saleId, requestIds);
    const misnamed = JSON.stringify({ v: 1, saleId, requestId: good[0] });
    await client.hset(`${queuePrefix(saleId)}:${WRITE_ORDER.queue}:${bad}`, "data", data ?? misnamed);
    const handled: string[] = [];
    const { dead } = consume(async (requestId) => {
      handled.push(requestId);
      return { kind: "done" };
    });
    await waitFor(async () => dead.size === 1 && handled.length === 4, { what: "all of them" });
    expect(dead).toEqual(new Map([[bad, { stage: "job", error, attempts: 1 }]]));
    expect(handled.sort()).toEqual(good.sort());
    expect(await queues.states(saleId, requestIds)).toEqual(["failed", ...good.map(() => "unknown")]);
  });
});
