/** APIs that are killed between any two of their steps: faults 2 and 7 of docs/faults.md. */
import { randomUUID } from "node:crypto";
import { beforeAll, describe, expect, test } from "vitest";
import { bury } from "../../src/operations/bury.js";
import { relay } from "../../src/operations/relay.js";
import type { Resources } from "../../src/resources.js";
import { openProcess } from "../operations/support.js";
import { settleAndCheck } from "../support/invariants.js";
import { spawnNode } from "../support/processes.js";
import {
  type Api,
  prepareSluice,
  reserve,
  type TestSale,
  type TestSluice,
  waitUntilDecided,
} from "../support/sluice.js";
import { waitFor } from "../support/wait.js";
import { endLetter, letterOf, listen, QUICK, queue, recordsOf, tuned } from "./drills.js";

let sluice: TestSluice;
let api: Api;
/** What does by hand what a worker would, where none may run. */
let inside: Resources;

beforeAll(async () => {
  sluice = await prepareSluice({ env: tuned(QUICK) });
  [api, inside] = await Promise.all([sluice.startApi(), openProcess(sluice)]);
});

const NO_ANSWER = { data: { reserve: { status: "none" } } };

interface Scene {
  readonly doomed: Api;
  readonly sale: TestSale;
}

/** An API that dies at each of the points, and a sale for its last deed. Started together, and nothing else meanwhile. */
async function doomedAt(points: readonly string[]): Promise<Map<string, Scene>> {
  const sales: TestSale[] = [];
  for (const _ of points) sales.push(await sluice.createSale(api, { initial: [5] }));
  const doomed = await Promise.all(points.map((point) => sluice.startApi({ SLUICE_FAILPOINTS: `${point}=kill` })));
  return new Map(points.map((point, at) => [point, { doomed: doomed[at] as Api, sale: sales[at] as TestSale }]));
}

describe("a compensation that is run ten times at once", () => {
  const points = ["compensate.before_commit", "compensate.after_commit"];
  let scenes: Map<string, Scene>;
  beforeAll(async () => {
    scenes = await doomedAt(points);
  });

  test.each(points)("by an API that is killed at %s, and ten times again, gives the stock back once", async (point) => {
    const { doomed, sale } = scenes.get(point) as Scene;
    const buyer = await queue(sluice, api, sale, { quantity: 2 });
    const heard = listen(api, sale, buyer);
    expect(await heard.next()).toMatchObject({ status: "QUEUED" });
    await bury(inside, sale.id, [{ requestId: buyer.requestId, stage: "write", lastError: "no luck", attempts: 5 }]);
    const letter = await letterOf(sluice, buyer);
    const tenTimes = (by: Api) =>
      Promise.allSettled(Array.from({ length: 10 }, () => endLetter(sluice, by, "compensateDeadLetter", sale, letter)));

    expect(new Set((await tenTimes(doomed)).map(({ status }) => status))).toEqual(new Set(["rejected"]));
    expect((await doomed.exited).signal).toBe("SIGKILL");
    expect((await letterOf(sluice, buyer)).status).toBe(point === "compensate.after_commit" ? "COMPENSATED" : "OPEN");

    expect(await tenTimes(api)).toEqual(Array(10).fill({ status: "fulfilled", value: "COMPENSATED" }));
    await relay(inside);
    expect(await heard.next()).toEqual({ status: "FAILED", reasonCode: "PROCESSING_FAILED" });
    expect(await heard.done).toEqual({ kind: "completed" });
    await settleAndCheck(sluice.databaseUrl, sluice.redis.url, sale.id);
    expect(await recordsOf(sluice, sale)).toEqual({ orders: 0, events: 1 });
    expect((await reserve(api, buyer.token, sale)).data?.reserve.status).toBe("QUEUED");
  });
});

describe("an API that is killed", () => {
  const points = [
    "reserve.before_script",
    "reserve.after_script",
    "journal.before_commit",
    "journal.after_commit",
    "journal.before_enqueue",
    "journal.after_enqueue",
  ];
  let scenes: Map<string, Scene>;
  beforeAll(async () => {
    scenes = await doomedAt(points);
    await sluice.startWorker();
  });

  test.concurrent.each(points)("at %s leaves a request that ends once, and whose repeat is answered", async (point) => {
    const { doomed, sale } = scenes.get(point) as Scene;
    const [token, requestId] = [await sluice.token("buyer", "victim"), randomUUID()];
    // Refused for want of a store, as on a machine that is short of breath, it is sent again.
    const answer = await waitFor(
      async () => {
        const { data } = await reserve(doomed, token, sale, { requestId }).catch(() => NO_ANSWER);
        return data?.reserve.status;
      },
      { what: "its death", timeoutMs: 30_000 },
    );
    // At the last point the request is where it belongs, and the answer may have left.
    expect(point === "journal.after_enqueue" ? ["QUEUED", "none"] : ["none"]).toContain(answer);
    expect((await doomed.exited).signal).toBe("SIGKILL");

    if (point === "reserve.before_script") {
      // Nobody has heard of it: it takes place when it is sent again.
      expect((await reserve(api, token, sale, { requestId })).data?.reserve.status).toBe("QUEUED");
    }
    // Nobody sends the others again: they are brought to their end without their buyer.
    expect((await waitUntilDecided(api, token, sale.id, requestId)).status).toBe("SUCCESS");
    const repeat = (await reserve(api, token, sale, { requestId })).data?.reserve;
    expect(repeat).toMatchObject({
      status: "DECIDED",
      reservation: { status: "SUCCESS", order: { id: `${sale.id}.${requestId}`, status: "PENDING_PAYMENT" } },
    });
    await settleAndCheck(sluice.databaseUrl, sluice.redis.url, sale.id);
    expect(await recordsOf(sluice, sale)).toEqual({ orders: 1, events: 0, LOCK: 1 });
  });
});

test("in production a process with a failpoint armed does not start", async () => {
  const env = { ...sluice.env, NODE_ENV: "production", SLUICE_FAILPOINTS: "write.before_ack=delay:1" };
  const worker = await spawnNode("workers/main.ts", env);
  await worker.waitForLine(/^SLUICE_FAILPOINTS is for drills: unset it where NODE_ENV is production/);
  expect((await worker.exited).code).toBe(1);
});
