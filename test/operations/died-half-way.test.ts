import { Worker } from "bullmq";
import { beforeAll, describe, expect, test } from "vitest";
import { HOUR } from "../../src/domain/time.js";
import type { Failpoint } from "../../src/lifecycle/failpoints.js";
import { bury } from "../../src/operations/bury.js";
import { checkSale } from "../../src/operations/check-sale.js";
import { forward } from "../../src/operations/forward.js";
import { relay } from "../../src/operations/relay.js";
import { replayDeadLetter } from "../../src/operations/replay.js";
import { writeOrders } from "../../src/operations/write-orders.js";
import { WRITE_ORDER } from "../../src/queue/jobs.js";
import { queuePrefix } from "../../src/redis/keys.js";
import type { Resources } from "../../src/resources.js";
import { spawnNode } from "../support/processes.js";
import { atEndOfFile } from "../support/test-file.js";
import {
  changeUntold,
  environmentOf,
  openProcess,
  openSale,
  order,
  queueOne,
  remaining,
  type Stores,
  startStores,
  type TestSale,
} from "./support.js";

const HASTY = { tuning: { repairAfterMs: 1 } };

let stores: Stores;
/** To whom everything that waits has waited for too long. */
let sluice: Resources;

beforeAll(async () => {
  stores = await startStores();
  sluice = await openProcess(stores, HASTY);
});

/** Has a process of its own begin something that it doesn't live to end. */
async function dieAt(point: Failpoint, sale: TestSale, about: Record<string, string> = {}): Promise<void> {
  const doomed = await spawnNode("test/operations/fixtures/run-once.ts", {
    ...environmentOf(stores, HASTY),
    ...about,
    THING: point.split(".")[0] ?? "",
    SALE_ID: sale.id,
    SLUICE_FAILPOINTS: `${point}=kill`,
  });
  expect((await doomed.exited).signal).toBe("SIGKILL");
}

const inLine = (sale: TestSale) => stores.client.zrange(`sluice:{${sale.id}}:pending`, 1, -1);
const stateOf = async (sale: TestSale, requestId: string) => (await sluice.queues.states(sale.id, [requestId]))[0];

async function letterOf(requestId: string): Promise<{ id: string; status: string }> {
  const letters = await stores.sql<{ id: string; status: string }>(
    'SELECT id::text AS id, status::text AS status FROM dead_letters WHERE "requestId" = $1',
    [requestId],
  );
  expect(letters).toHaveLength(1);
  return letters[0] as { id: string; status: string };
}

async function attemptsOf(requestId: string): Promise<number | undefined> {
  const rows = await stores.sql<{ attempts: number }>('SELECT attempts FROM requests WHERE "requestId" = $1', [
    requestId,
  ]);
  return rows[0]?.attempts;
}

/** The request becomes an order, and nothing else is left of it. */
async function expectOrder(sale: TestSale, requestId: string): Promise<void> {
  expect(await stateOf(sale, requestId)).toBe("waiting");
  expect(await inLine(sale)).toEqual([requestId]);
  expect(await writeOrders(sluice, sale.id, [requestId])).toMatchObject([{ decision: { outcome: "ORDERED" } }]);
  await stores.expectSound(sale);
}

describe.concurrent("whoever dies", () => {
  test("between a dead letter and the line leaves both to the forwarder", async () => {
    const sale = await openSale(sluice);
    const requestId = await queueOne(sluice, sale, "anna");
    await dieAt("bury.after_commit", sale, { REQUEST_ID: requestId });
    expect((await letterOf(requestId)).status).toBe("OPEN");
    expect(await inLine(sale)).toEqual([requestId]);
    await forward(sluice, sale.id, 1, 0);
    expect(await inLine(sale)).toEqual([]);
    expect((await letterOf(requestId)).status).toBe("OPEN");
    // It waits for somebody, which is no breach.
    expect(await checkSale(sluice, sale.id, HOUR)).toMatchObject({ findings: [], uncompared: null });
  });

  test.each(["replay.after_commit", "replay.after_remove"] as const)(
    "in a replay (%s) has decided it: the forwarder does the rest",
    async (point) => {
      const sale = await openSale(sluice);
      const requestId = await queueOne(sluice, sale, "anna");
      await bury(sluice, sale.id, [{ requestId, stage: "write", lastError: "no luck", attempts: 5 }]);
      await sluice.queues.remove(sale.id, [requestId]);
      const { id } = await letterOf(requestId);
      await dieAt(point, sale, { LETTER_ID: id });
      expect((await letterOf(requestId)).status).toBe("REPLAYED");
      expect(await stateOf(sale, requestId)).toBe("unknown");

      // The repeat has nothing to do, and is no second replay.
      await replayDeadLetter(sluice, { saleId: sale.id, id: BigInt(id), reason: "again", actor: "olga" });
      await forward(sluice, sale.id, 1, 0);
      expect(await attemptsOf(requestId)).toBe(0);
      await expectOrder(sale, requestId);
    },
  );

  test.each([
    ["forward.after_remove", "unknown", 1],
    ["forward.after_add", "waiting", 0],
  ] as const)(
    "while it adds a job again (%s) leaves a request that the next one sees to",
    async (point, left, attempts) => {
      const sale = await openSale(sluice);
      const requestId = await queueOne(sluice, sale, "anna");
      await rememberAsDone(sale, requestId);
      await stores.sql('UPDATE requests SET "dueAt" = now() WHERE "requestId" = $1', [requestId]);
      await dieAt(point, sale);
      expect(await stateOf(sale, requestId)).toBe(left);
      expect(await attemptsOf(requestId)).toBe(0);
      await forward(sluice, sale.id, 1, 0);
      expect(await attemptsOf(requestId)).toBe(attempts);
      await expectOrder(sale, requestId);
    },
  );

  test("between an event that is applied and its mark has its units given back once", async () => {
    const sale = await openSale(sluice, { initial: 10 });
    const requestId = await order(sluice, sale, "anna", { quantity: 3 });
    await changeUntold(sluice, sale, requestId);
    expect(await remaining(stores, sale)).toBe(7);
    await dieAt("relay.before_mark", sale);
    const unmarked = () =>
      stores.sql('SELECT 1 FROM request_events WHERE "saleId" = $1 AND "appliedAt" IS NULL', [sale.id]);
    expect([await remaining(stores, sale), (await unmarked()).length]).toEqual([10, 1]);
    await Promise.all([relay(sluice), relay(sluice)]);
    expect([await remaining(stores, sale), (await unmarked()).length]).toEqual([10, 0]);
    await stores.expectSound(sale);
  });
});

/** Has BullMQ remember the job of a request as completed, though nobody has decided it. */
async function rememberAsDone(sale: TestSale, requestId: string): Promise<void> {
  await sluice.queues.remove(sale.id, [requestId]);
  const payload = { v: 1 as const, saleId: sale.id, requestId };
  await sluice.queues.open(sale.id).add(WRITE_ORDER.name, payload, { jobId: requestId, removeOnComplete: false });
  const options = { connection: { url: stores.redis.url }, prefix: queuePrefix(sale.id), skipVersionCheck: true };
  const worker = new Worker(WRITE_ORDER.queue, null, { ...options, autorun: false });
  atEndOfFile(() => worker.close(true));
  const job = await worker.getNextJob("taken");
  await job?.moveToCompleted("done", "taken", false);
  expect(await stateOf(sale, requestId)).toBe("completed");
}
