/** Workers that are killed or frozen between any two of their steps: faults 3 to 6 of docs/faults.md. */
import { beforeAll, describe, expect, test } from "vitest";
import { bury } from "../../src/operations/bury.js";
import type { Resources } from "../../src/resources.js";
import { openProcess } from "../operations/support.js";
import { settleAndCheck } from "../support/invariants.js";
import type { NodeProcess } from "../support/processes.js";
import {
  type Api,
  prepareSluice,
  reserve,
  type TestSale,
  type TestSluice,
  waitUntilDecided,
} from "../support/sluice.js";
import { query } from "../support/sql.js";
import { waitFor } from "../support/wait.js";
import { endLetter, hearsSuccess, letterOf, listen, QUICK, queue, recordsOf, tuned } from "./drills.js";

let sluice: TestSluice;
let api: Api;
let inside: Resources;
/** The one that is well. It is frozen while another one is to take the jobs. */
let healthy: NodeProcess;

beforeAll(async () => {
  sluice = await prepareSluice({ env: tuned(QUICK) });
  [api, healthy, inside] = await Promise.all([sluice.startApi(), sluice.startWorker(), openProcess(sluice)]);
});

const freezeHealthy = () => healthy.kill("SIGSTOP");
const thawHealthy = () => healthy.kill("SIGCONT");
const startDoomed = (failpoints: string, more: Record<string, string> = {}) =>
  sluice.startWorker({ SLUICE_FAILPOINTS: failpoints, ...more });
const settled = (sale: TestSale) => settleAndCheck(sluice.databaseUrl, sluice.redis.url, sale.id);

async function end(worker: NodeProcess): Promise<void> {
  worker.kill("SIGKILL");
  await worker.exited;
}

describe("a worker that is killed", () => {
  test.each([
    "write.before_begin",
    "write.after_stock",
    "write.before_commit",
    "write.after_commit",
    "write.before_confirm",
    "write.before_ack",
  ])("at %s leaves one order and one decrement a request, and its buyer hears SUCCESS", async (point) => {
    freezeHealthy();
    const sale = await sluice.createSale(api, { initial: [5] });
    const buyers = await Promise.all(Array.from({ length: 3 }, () => queue(sluice, api, sale)));
    const heard = buyers.map((buyer) => listen(api, sale, buyer));
    const doomed = await startDoomed(`${point}=kill`);
    expect((await doomed.exited).signal).toBe("SIGKILL");
    thawHealthy();
    await Promise.all(heard.map(hearsSuccess));
    await settled(sale);
    expect(await recordsOf(sluice, sale)).toEqual({ orders: 3, events: 0, LOCK: 3 });
  });
});

describe("a worker that is frozen until another one has done its job", () => {
  test.each(["write.before_begin", "write.after_commit"])("at %s does no harm when it thaws", async (point) => {
    freezeHealthy();
    const sale = await sluice.createSale(api, { initial: [5] });
    const buyer = await queue(sluice, api, sale);
    const frozen = await startDoomed(`${point}=freeze`, { LOG_LEVEL: "debug" });
    await frozen.waitForLine(/^failpoint/);
    thawHealthy();
    await hearsSuccess(listen(api, sale, buyer));
    await waitFor(async () => (await inside.queues.states(sale.id, [buyer.requestId]))[0] === "unknown", {
      what: "the job to be done",
    });

    frozen.kill("SIGCONT");
    // Its word on the job comes too late for BullMQ, which has forgotten it.
    await frozen.waitForLine(/"err":.*Missing (key|lock) for job.*trouble with the queue/);
    await settled(sale);
    expect(await recordsOf(sluice, sale)).toEqual({ orders: 1, events: 0, LOCK: 1 });
    await end(frozen);
  });
});

/** How many transactions of workers wait for their process to go on. */
async function heldByWriters(): Promise<number> {
  const rows = await query(
    sluice.databaseUrl,
    `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'
       AND application_name LIKE 'sluice:worker%'`,
  );
  return rows.length;
}

test("a writer that is frozen inside its transaction keeps nothing for long: its request is compensated, others are written, and it comes too late", async () => {
  freezeHealthy();
  const sale = await sluice.createSale(api, { initial: [5] });
  const buyer = await queue(sluice, api, sale, { quantity: 2 });
  const heard = listen(api, sale, buyer);
  await bury(inside, sale.id, [{ requestId: buyer.requestId, stage: "stalled", lastError: "silent", attempts: 3 }]);
  const letter = await letterOf(sluice, buyer);
  const frozen = await startDoomed(
    "write.after_stock=freeze",
    tuned({ ...QUICK, sql: { idleInTransactionMs: 2_000 } }),
  );
  await frozen.waitForLine(/^failpoint/);

  expect(await heldByWriters()).toBeGreaterThan(0);
  const since = performance.now();
  expect(await endLetter(sluice, api, "compensateDeadLetter", sale, letter)).toBe("COMPENSATED");
  expect(performance.now() - since).toBeLessThan(10_000);
  thawHealthy();
  await hearsSuccess(listen(api, sale, await queue(sluice, api, sale)));
  expect(await heard.until(({ status }) => status !== "QUEUED", "its end")).toEqual({
    status: "FAILED",
    reasonCode: "PROCESSING_FAILED",
  });

  // It works on: whatever comes now is its own.
  await end(healthy);
  frozen.kill("SIGCONT");
  await hearsSuccess(listen(api, sale, await queue(sluice, api, sale)));
  await settled(sale);
  expect(await recordsOf(sluice, sale)).toEqual({ orders: 2, events: 1, LOCK: 2 });
  await end(frozen);
});

test("jobs at which too many workers die become dead letters, without a word of theirs: one is replayed, one compensated, each once", async () => {
  // Whoever takes the one job has the time to take the other one, too.
  const strict = tuned({ ...QUICK, jobs: { ...QUICK.jobs, takeovers: 1 }, writer: { maxWaitMs: 100 } });
  const sale = await sluice.createSale(api, { initial: [5] });
  const [replayed, compensated] = [await queue(sluice, api, sale), await queue(sluice, api, sale, { quantity: 2 })];
  const heard = [listen(api, sale, replayed), listen(api, sale, compensated)] as const;
  for (let died = 0; died < 2; died += 1) {
    const doomed = await startDoomed("write.before_begin=kill", strict);
    expect((await doomed.exited).signal).toBe("SIGKILL");
  }
  await sluice.startWorker(strict);
  const letters = [await letterOf(sluice, replayed), await letterOf(sluice, compensated)] as const;
  for (const letter of letters) {
    expect(letter).toMatchObject({ stage: "stalled", status: "OPEN", lastError: expect.stringContaining("stalled") });
  }
  expect(await recordsOf(sluice, sale)).toEqual({ orders: 0, events: 0 });
  expect((await reserve(api, compensated.token, sale)).data?.reserve.status).toBe("ALREADY_RESERVED");

  for (let time = 0; time < 2; time += 1) {
    expect(await endLetter(sluice, api, "replayDeadLetter", sale, letters[0])).toBe("REPLAYED");
    expect(await endLetter(sluice, api, "compensateDeadLetter", sale, letters[1])).toBe("COMPENSATED");
  }
  await hearsSuccess(heard[0]);
  const { status, reasonCode } = await waitUntilDecided(api, compensated.token, sale.id, compensated.requestId);
  expect([status, reasonCode]).toEqual(["FAILED", "PROCESSING_FAILED"]);
  expect(await heard[1].done).toEqual({ kind: "completed" });
  expect(await endLetter(sluice, api, "compensateDeadLetter", sale, letters[0])).toBe("CONFLICT");
  expect(await endLetter(sluice, api, "replayDeadLetter", sale, letters[1])).toBe("CONFLICT");
  await settled(sale);
  expect(await recordsOf(sluice, sale)).toEqual({ orders: 1, events: 1, LOCK: 1 });
});
