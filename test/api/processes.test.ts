/** WEB_CONCURRENCY: several processes on one port, kept running by a primary. */
import { randomUUID } from "node:crypto";
import { beforeAll, expect, test } from "vitest";
import { findFreePort } from "../../src/embedded/ports.js";
import { identify, isRunning } from "../../src/embedded/process-identity.js";
import { settleAndCheck } from "../support/invariants.js";
import { type NodeProcess, spawnNode } from "../support/processes.js";
import {
  type Api,
  prepareSluice,
  reserve,
  type TestSale,
  type TestSluice,
  waitUntilDecided,
} from "../support/sluice.js";
import { waitFor } from "../support/wait.js";

let sluice: TestSluice;
let api: Api;
let sale: TestSale;

beforeAll(async () => {
  sluice = await prepareSluice();
  api = await sluice.startApi({ WEB_CONCURRENCY: "2" });
  await waitFor(() => servingPids(api).length === 2, { what: "two processes" });
  await sluice.startWorker();
  await waitFor(async () => (await fetch(`${api.url}/ready`)).status === 200, { what: "the API to be ready" });
  sale = await sluice.createSale(api, { initial: [1_000] });
});

/** The processes that have said that they serve, in their order. */
function servingPids({ lines }: NodeProcess): number[] {
  return lines.filter((line) => line.includes("api ready")).map((line) => (JSON.parse(line) as { pid: number }).pid);
}

/** Reservations of different buyers, one after the other over connections of their own. Resolves with their states. */
async function buy(count: number): Promise<string[]> {
  return Promise.all(
    Array.from({ length: count }, async () => {
      const buyer = await sluice.token("buyer", randomUUID());
      const { data } = await reserve(api, buyer, sale);
      expect(data?.reserve.status).toBe("QUEUED");
      const requestId = data?.reserve.reservation?.requestId ?? "";
      return (await waitUntilDecided(api, buyer, sale.id, requestId)).status;
    }),
  );
}

/** The sum of a counter over all its labels, as a scrape tells it. */
async function counted(name: string): Promise<number> {
  const operator = await sluice.token("operator", "olga");
  const answer = await fetch(`${api.url}/metrics`, { headers: { authorization: `Bearer ${operator}` } });
  expect(answer.status).toBe(200);
  const lines = (await answer.text()).split("\n").filter((line) => line.startsWith(`${name}{`));
  return lines.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
}

test("all of them sell, and every scrape tells the sum of all", async () => {
  expect(new Set(servingPids(api)).size).toBe(2);
  expect(new Set(await buy(40))).toEqual(new Set(["SUCCESS"]));
  for (let scrape = 0; scrape < 6; scrape += 1) expect(await counted("sluice_reservations_total")).toBe(40);
  await settleAndCheck(sluice.databaseUrl, sluice.redis.url, sale.id);
});

test("their figures and their health are on METRICS_PORT too, without a token", async () => {
  const port = await findFreePort();
  const other = await sluice.startApi({ WEB_CONCURRENCY: "2", METRICS_PORT: String(port) });
  await waitFor(() => servingPids(other).length === 2, { what: "two processes" });
  const ask = (path: string) => fetch(`http://127.0.0.1:${port}${path}`).catch(() => null);
  await waitFor(async () => (await ask("/ready"))?.status === 200, { what: "200 of /ready" });
  const text = await (await ask("/metrics"))?.text();
  expect(text).toMatch(/^sluice_dependency_up\{dependency="redis"\} 1$/m);
  other.kill("SIGTERM");
  expect((await other.exited).code).toBe(0);
});

test("one that is killed is replaced while the others go on, and no counter goes back", async () => {
  const before = await counted("sluice_reservations_total");
  const [killed = 0, other = 0] = servingPids(api);
  process.kill(killed, "SIGKILL");
  await waitFor(() => servingPids(api).length === 3, { what: "a new process" });
  expect(identify(other)).not.toBeNull();
  expect(await counted("sluice_reservations_total")).toBe(before);
  expect(new Set(await buy(20))).toEqual(new Set(["SUCCESS"]));
  expect(await counted("sluice_reservations_total")).toBe(before + 20);
});

test("a scrape is answered while one of them is frozen, with what that one told last", async () => {
  const before = await counted("sluice_reservations_total");
  const frozen = servingPids(api).at(-1) as number;
  process.kill(frozen, "SIGSTOP");
  try {
    const answered = await waitFor(
      async () => {
        // A connection that is handed to the frozen one has to be given up.
        const operator = await sluice.token("operator", "olga");
        const answer = await fetch(`${api.url}/metrics`, {
          headers: { authorization: `Bearer ${operator}`, connection: "close" },
          signal: AbortSignal.timeout(3_000),
        }).catch(() => null);
        return answer?.status === 200 && (await answer.text());
      },
      { what: "a scrape" },
    );
    const told = [...answered.matchAll(/^sluice_reservations_total\{.*\} (\d+)$/gm)];
    expect(told.reduce((sum, [, value]) => sum + Number(value), 0)).toBe(before);
  } finally {
    process.kill(frozen, "SIGCONT");
  }
});

test("SIGTERM ends all of them in order, and a killed primary leaves none behind", async () => {
  const ofFirst = servingPids(api).flatMap((pid) => identify(pid) ?? []);
  expect(ofFirst).toHaveLength(2);
  api.kill("SIGTERM");
  expect(await api.exited).toEqual({ code: 0, signal: null });
  for (const identity of ofFirst) expect(isRunning(identity)).toBe(false);

  const second = await sluice.startApi({ WEB_CONCURRENCY: "2" });
  await waitFor(() => servingPids(second).length === 2, { what: "two processes" });
  const ofSecond = servingPids(second).flatMap((pid) => identify(pid) ?? []);
  second.kill("SIGKILL");
  await waitFor(() => ofSecond.every((identity) => !isRunning(identity)), { what: "their end" });
});

test("where the first one can't start, everything ends with its word", async () => {
  const first = await sluice.startApi();
  const port = new URL(first.url).port;
  const second = await spawnNode("src/main.ts", { ...sluice.env, PORT: port, WEB_CONCURRENCY: "3" });
  expect((await second.exited).code).toBe(1);
  expect(second.lines.filter((line) => line.includes("EADDRINUSE"))).toHaveLength(1);
});
