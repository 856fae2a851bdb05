/** What Sluice is compared with must itself be right, or being faster than it says nothing. */
import { randomUUID } from "node:crypto";
import { Queue } from "bullmq";
import { Redis } from "ioredis";
import { beforeAll, describe, expect, it } from "vitest";
import { findBreaches } from "../../bench/invariants.js";
import { type Program, startProgram } from "../../bench/program.js";
import { makeSale } from "../../bench/trial.js";
import { signToken } from "../../src/admission/sign-token.js";
import { createTestDatabase } from "../support/database.js";
import { startTestRedis, type TestRedis } from "../support/redis.js";
import { query } from "../support/sql.js";
import { atEndOfFile, endWithRun } from "../support/test-file.js";
import { waitFor } from "../support/wait.js";

const AUTH = { secret: "a secret of the tests, longer than 32 characters", issuer: "shop", audience: "buyers" };
const ROUNDS_API = "bench/baseline/rounds-api.ts";
const WORKER = "bench/baseline/straightforward-worker.ts";
const PATIENT = { timeoutMs: 30_000 };

const CONTENDERS = [
  { name: "round 1", api: ROUNDS_API, env: { ROUND: "1" }, worker: null },
  { name: "round 2", api: ROUNDS_API, env: { ROUND: "2" }, worker: null },
  { name: "round 3", api: ROUNDS_API, env: { ROUND: "3" }, worker: WORKER },
  { name: "the straightforward build", api: "bench/baseline/straightforward-api.ts", env: {}, worker: WORKER },
] as const;

interface Sale {
  readonly saleId: string;
  readonly itemId: string;
}

interface Asked extends Sale {
  readonly buyer: string;
  readonly requestId: string;
  readonly quantity?: number;
}

interface Answer {
  readonly httpStatus: number;
  readonly status?: string | undefined;
  readonly requestId?: string | undefined;
  readonly stage?: string | undefined;
  readonly code?: string | undefined;
}

let redis: TestRedis;
let databaseUrl: string;
let stores: Record<string, string>;

beforeAll(async () => {
  redis = await startTestRedis();
  databaseUrl = (await createTestDatabase()).url;
  stores = {
    DATABASE_URL: databaseUrl,
    REDIS_URL: redis.url,
    JWT_SECRET: AUTH.secret,
    JWT_ISSUER: AUTH.issuer,
    JWT_AUDIENCE: AUTH.audience,
    BACKOFF_MS: "1",
  };
});

describe.each(CONTENDERS)("$name", ({ api: entry, env, worker: workerEntry }) => {
  let api: Program;
  let worker: Program | null = null;

  beforeAll(async () => {
    await redis.flushAll();
    api = await start(entry, env);
    worker = workerEntry && (await start(workerEntry));
    return async () => {
      await Promise.all([api.stop(), worker?.stop()]);
    };
  });

  it("sells ten units to ten of forty buyers, each of whom asks twice at once", async () => {
    const sale = await openSale(10);
    const asked = buyersOf(sale, 40).flatMap((first) => [first, { ...first, requestId: randomUUID() }]);
    const answers = await Promise.all(asked.map((request) => askUntilAnswered(api, request)));
    await waitUntilWritten(sale, 10);

    const accepted = asked.filter((_, at) => isAccepted(answers[at]));
    expect(new Set(accepted.map(({ buyer }) => buyer)).size).toBe(10);
    expect(accepted).toHaveLength(10);
    expect(await ordersOf(sale)).toEqual(accepted.map(({ buyer, requestId }) => `${buyer} ${requestId}`).sort());
    expect(await findBreaches({ databaseUrl, redisUrl: redis.url }, sale.saleId, "S U")).toEqual([]);

    // Everybody sends the same again, and hears the same; of an accepted request that it has its order by now.
    const again = await Promise.all(asked.map((request) => ask(api, request)));
    const winners = new Set(accepted.map(({ buyer }) => buyer));
    const expected = asked.map((request) => {
      const { buyer, requestId } = request;
      if (!winners.has(buyer)) return { httpStatus: 200, status: "SOLD_OUT" };
      if (accepted.includes(request)) return { httpStatus: 200, status: "DECIDED", requestId, stage: "SUCCESS" };
      const theirs = accepted.find((each) => each.buyer === buyer)?.requestId;
      return { httpStatus: 200, status: "ALREADY_RESERVED", requestId: theirs, stage: "SUCCESS" };
    });
    expect(again).toEqual(expected);
    expect(await ordersOf(sale)).toHaveLength(10);
  });

  it("gives one order to one request that comes ten times at once", async () => {
    const sale = await openSale(10);
    const [request] = buyersOf(sale, 1) as [Asked];
    const answers = await Promise.all(Array.from({ length: 10 }, () => askUntilAnswered(api, request)));
    expect(answers.every(isAccepted)).toBe(true);
    await waitUntilWritten(sale, 1);
    expect(await ordersOf(sale)).toHaveLength(1);
    expect(await findBreaches({ databaseUrl, redisUrl: redis.url }, sale.saleId, "S U")).toEqual([]);
  });

  it("refuses what can't be: too many, other contents, no such sale or item, no token", async () => {
    const sale = await openSale(10);
    const [request] = buyersOf(sale, 1) as [Asked];
    expect(await ask(api, { ...request, quantity: 2 })).toMatchObject({ status: "LIMIT_EXCEEDED" });
    expect(await ask(api, { ...request, quantity: 0 })).toMatchObject({ code: "BAD_USER_INPUT" });
    expect(await ask(api, { ...request, saleId: "none" })).toMatchObject({ code: "NOT_FOUND" });
    expect(await ask(api, { ...request, itemId: "none" })).toMatchObject({ code: "NOT_FOUND" });
    expect(await ask(api, request, null)).toMatchObject({ code: "UNAUTHENTICATED" });
    const stranger = { ...AUTH, secret: "another secret, also longer than 32 characters" };
    expect(await ask(api, request, stranger)).toMatchObject({ code: "UNAUTHENTICATED" });
    expect(await ask(api, request, { ...AUTH, audience: "others" })).toMatchObject({ code: "UNAUTHENTICATED" });
    expect(await ordersOf(sale)).toEqual([]);
  });

  it("sells nothing before the sale is opened", async () => {
    const sale = await makeSale(databaseUrl, 1);
    const [request] = buyersOf(sale, 1) as [Asked];
    expect(await ask(api, request)).toMatchObject({ status: "NOT_STARTED" });
    await open(sale);
    expect(await askUntilAnswered(api, request)).toSatisfy(isAccepted);
    await waitUntilWritten(sale, 1);
  });

  it("offers to others what it accepted and can't write", async () => {
    const sale = await openSale(1);
    const [, second] = buyersOf(sale, 2) as [Asked, Asked];
    const cursed = { ...second, buyer: "cursed", requestId: randomUUID() };
    await query(databaseUrl, `ALTER TABLE orders ADD CONSTRAINT no_curse CHECK ("buyerId" <> 'cursed') NOT VALID`);
    try {
      await ask(api, cursed);
      await waitFor(async () => isAccepted(await ask(api, second)), { ...PATIENT, what: "the unit to come back" });
      await waitUntilWritten(sale, 1);
      expect(await ordersOf(sale)).toEqual([`${second.buyer} ${second.requestId}`]);
      expect(await findBreaches({ databaseUrl, redisUrl: redis.url }, sale.saleId, "S U")).toEqual([]);
    } finally {
      await query(databaseUrl, "ALTER TABLE orders DROP CONSTRAINT no_curse");
    }
  });

  it("refuses a body that is too large, or of unknown length", async () => {
    const body = JSON.stringify({ query: `{ serverTime } #${"x".repeat(128 * 1024)}` });
    expect((await post(api.url, body)).status).toBe(413);
    const stream = new Blob([JSON.stringify({ query: "{ serverTime }" })]).stream();
    expect((await post(api.url, stream)).status).toBe(413);
  });
});

describe.each(CONTENDERS.filter(({ worker }) => worker !== null))("$name", ({ api: entry, env }) => {
  it("adds a job again that got lost, when the request comes again", async () => {
    await redis.flushAll();
    const api = await start(entry, env);
    const sale = await openSale(10);
    const [request] = buyersOf(sale, 1) as [Asked];
    const queued = { httpStatus: 200, status: "QUEUED", requestId: request.requestId, stage: "QUEUED" };
    expect(await ask(api, request)).toEqual(queued);

    const client = new Redis(redis.url, { maxRetriesPerRequest: null });
    const queue = new Queue("orders", { connection: client });
    atEndOfFile(async () => {
      await queue.close();
      client.disconnect();
    });
    expect(await queue.count()).toBe(1);
    await queue.drain();
    expect(await queue.count()).toBe(0);

    expect(await ask(api, request)).toEqual(queued);
    const worker = await start(WORKER);
    await waitUntilWritten(sale, 1);
    expect(await findBreaches({ databaseUrl, redisUrl: redis.url }, sale.saleId, "S U")).toEqual([]);
    await Promise.all([api.stop(), worker.stop()]);
  });
});

describe("ceilings", () => {
  it.each(["bench/ceilings/echo.ts", "bench/ceilings/yoga-noop.ts"])("%s answers the same requests", async (entry) => {
    const program = await start(entry);
    const [request] = buyersOf({ saleId: "none", itemId: "none" }, 1) as [Asked];
    expect(await ask(program, request, null)).toEqual({ httpStatus: 200, status: "SOLD_OUT" });
    await program.stop();
  });

  it("the worker without any work empties its queue", async () => {
    const client = new Redis(redis.url, { maxRetriesPerRequest: null });
    const queue = new Queue("jobs", { connection: client });
    atEndOfFile(async () => {
      await queue.close();
      client.disconnect();
    });
    await queue.addBulk(Array.from({ length: 2_000 }, () => ({ name: "nothing", data: {} })));
    const worker = await start("bench/ceilings/noop-worker.ts", { QUEUE: "jobs" });
    await waitFor(async () => Object.values(await queue.getJobCounts()).every((count) => count === 0), {
      ...PATIENT,
      what: "the queue to be empty",
    });
    await worker.stop();
  });

  it("the script alone tells its pace and ends", async () => {
    const program = await start("bench/ceilings/script-alone.ts", { DECISIONS: "2000" });
    const report = (await program.report) as Record<string, number>;
    expect(Object.keys(report)).toEqual(["acceptedPerSecond", "soldOutPerSecond"]);
    for (const perSecond of Object.values(report)) expect(perSecond).toBeGreaterThan(0);
    await waitFor(() => !isRunning(program.pid), { ...PATIENT, what: "its end" });
  });
});

describe("a program", () => {
  it("says why it can't start", async () => {
    await expect(startProgram(ROUNDS_API, { ...stores, ROUND: "4" })).rejects.toThrow("ROUND must be 1, 2 or 3");
    await expect(startProgram("bench/ceilings/noop-worker.ts", {})).rejects.toThrow("REDIS_URL is not set");
  });

  it("tells what it uses, and is gone when it was stopped", async () => {
    const program = await start("bench/ceilings/echo.ts");
    expect(program.cpuSeconds()).toBeGreaterThan(0);
    expect(program.rssBytes()).toBeGreaterThan(10_000_000);
    await program.stop();
    expect(isRunning(program.pid)).toBe(false);
  });

  it("is reported when it dies by itself", async () => {
    const program = await start("bench/ceilings/echo.ts");
    process.kill(program.pid, "SIGKILL");
    await expect(program.died).rejects.toThrow("bench/ceilings/echo.ts ended (SIGKILL)");
  });
});

async function start(entry: string, env: Record<string, string> = {}): Promise<Program> {
  const program = await startProgram(entry, { ...stores, ...env }, { onSpawn: endWithRun });
  atEndOfFile(() => program.kill());
  return program;
}

async function openSale(units: number): Promise<Sale> {
  const sale = await makeSale(databaseUrl, units);
  await open(sale);
  return sale;
}

async function open({ saleId }: Sale): Promise<void> {
  await query(databaseUrl, `UPDATE sales SET state = 'OPEN' WHERE id = $1`, [saleId]);
}

function buyersOf(sale: Sale, count: number): Asked[] {
  return Array.from({ length: count }, (_, at) => ({ ...sale, buyer: `buyer-${at}`, requestId: randomUUID() }));
}

const RESERVE =
  "mutation ($input: ReserveInput!) { reserve(input: $input) { status reservation { requestId status ahead } message } }";

async function ask(program: Program, asked: Asked, auth: typeof AUTH | null = AUTH): Promise<Answer> {
  const { buyer, ...rest } = asked;
  const input = { quantity: 1, ...rest };
  const token = auth && (await signToken({ ...auth, role: "buyer", userId: buyer }));
  const response = await post(program.url, JSON.stringify({ query: RESERVE, variables: { input } }), token);
  const { data, errors } = (await response.json()) as {
    data?: { reserve: { status: string; reservation: { requestId: string; status: string } | null } } | null;
    errors?: { extensions?: { code?: string } }[];
  };
  return {
    httpStatus: response.status,
    status: data?.reserve.status,
    requestId: data?.reserve.reservation?.requestId,
    stage: data?.reserve.reservation?.status,
    code: errors?.[0]?.extensions?.code,
  };
}

/** As a buyer does who is told that his request is under way, or that the sale is not open yet. */
function askUntilAnswered(program: Program, asked: Asked): Promise<Answer> {
  const isFinal = ({ status }: Answer) => status !== undefined && !["PENDING", "NOT_STARTED"].includes(status);
  return waitFor(
    async () => {
      const answer = await ask(program, asked);
      return isFinal(answer) ? answer : null;
    },
    { ...PATIENT, what: "an answer" },
  );
}

function isAccepted(answer: Answer | undefined): boolean {
  return answer?.status === "QUEUED" || answer?.status === "DECIDED";
}

function post(url: string | undefined, body: string | ReadableStream, token: string | null = null): Promise<Response> {
  return fetch(`${url}/graphql`, {
    method: "POST",
    headers: { "content-type": "application/json", ...(token && { authorization: `Bearer ${token}` }) },
    body,
    duplex: "half",
  } as RequestInit);
}

async function ordersOf({ saleId }: Sale): Promise<string[]> {
  const rows = await query<{ text: string }>(
    databaseUrl,
    `SELECT "buyerId" || ' ' || "requestId" AS text FROM orders WHERE "saleId" = $1`,
    [saleId],
  );
  return rows.map(({ text }) => text).sort();
}

function waitUntilWritten(sale: Sale, orders: number): Promise<unknown> {
  return waitFor(async () => (await ordersOf(sale)).length >= orders, { ...PATIENT, what: `${orders} orders` });
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
