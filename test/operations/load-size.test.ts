/** A load of a large sale: 30,000 requests, right after they came, so that no table has been analyzed yet. */
import { beforeAll, expect, it } from "vitest";
import { HOUR } from "../../src/domain/time.js";
import { checkSale } from "../../src/operations/check-sale.js";
import { loadSale } from "../../src/operations/load.js";
import { LOAD_CHUNK } from "../../src/redis/load.js";
import type { Resources } from "../../src/resources.js";
import { waitFor } from "../support/wait.js";
import {
  ask,
  epochInDatabase,
  inRedis,
  openProcess,
  openSale,
  remaining,
  type Stores,
  startStores,
  type TestSale,
} from "./support.js";

const INITIAL = 50_000;
/** They have their orders; they failed, and Redis has yet to hear of it; they wait. */
const [ORDERED, FAILED, WAITING] = [20_000, 5_000, 5_000];
const REQUESTS = ORDERED + FAILED + WAITING;
/** What is counted here must not depend on how busy the machine is: nothing is given up for being late. */
const UNHURRIED = {
  deadlines: { requestMs: 50_000, journalMs: 40_000, redisCommandMs: 30_000 },
  sql: { statementMs: 30_000, readStatementMs: 30_000, lockMs: 20_000 },
};

let stores: Stores;
let sluice: Resources;

beforeAll(async () => {
  stores = await startStores();
  sluice = await openProcess(stores, { tuning: UNHURRIED });
});

it("a large sale is loaded in pieces, each row read once, and a neighbour's buyers are served meanwhile", async () => {
  const [sale, neighbour] = await Promise.all([openSale(sluice, { initial: INITIAL }), openSale(sluice)]);
  await fill(sale);
  const ordersRead = await countOrdersRead();
  await stores.client.config("SET", "slowlog-log-slower-than", "20000", "slowlog-max-len", "2000");
  await stores.client.config("RESETSTAT");
  const watched = watchStatements(sluice);

  const started = performance.now();
  const loading = loadSale(watched.resources, sale.id, {
    reason: "drift",
    mendsEpoch: await epochInDatabase(stores, sale),
  });
  const slowestMs = await serveUntil(loading, neighbour);
  expect((await loading).kind).toBe("loaded");
  const tookMs = performance.now() - started;
  const redis = await readRedisTimes();
  console.log(
    `${REQUESTS} requests in ${Math.round(tookMs)} ms; Redis ${redis.meanMs.toFixed(1)} ms a call, ${redis.longestMs} at most; ` +
      `a neighbour's buyer ${Math.round(slowestMs)} ms at most`,
  );

  // A call that the system interrupts takes long now and then; one that does too much does so every time.
  expect(redis.calls).toBeGreaterThanOrEqual(REQUESTS / LOAD_CHUNK);
  expect(redis.meanMs).toBeLessThan(10);
  expect(redis.slow).toBeLessThan(redis.calls / 20);
  // However many there are, so many are in memory, or changed by one statement.
  expect(Math.max(...watched.rows)).toBeLessThanOrEqual(2_000);
  expect(Math.max(...watched.changes)).toBeLessThanOrEqual(250);
  expect(sumOf(watched.changes)).toBeGreaterThanOrEqual(WAITING);
  // Each order is read once: a page that reads all of them would read millions.
  await waitFor(async () => (await countOrdersRead()) - ordersRead >= ORDERED, { what: "the statistics" });
  expect((await countOrdersRead()) - ordersRead).toBeLessThan(2 * REQUESTS);

  await expectLoaded(sale);
});

/** Everything is in Redis as it must be. */
async function expectLoaded(sale: TestSale): Promise<void> {
  expect(await remaining(stores, sale)).toBe(INITIAL - ORDERED - WAITING);
  const key = (name: string) => `sluice:{${sale.id}}:${name}`;
  expect(await stores.client.hlen(key("holders"))).toBe(ORDERED + WAITING + 1);
  const line = await stores.sql<{ requestId: string }>(
    'SELECT "requestId" FROM requests WHERE "saleId" = $1 AND outcome IS NULL ORDER BY seq',
    [sale.id],
  );
  expect(await stores.client.zrange(key("pending"), 1, -1)).toEqual(line.map(({ requestId }) => requestId));
  for (const [buyerId, stage] of [
    ["b-1", "ORDERED"],
    [`b-${ORDERED + 1}`, "FAILED"],
    [`b-${REQUESTS}`, "QUEUED"],
  ] as const) {
    const [row] = await stores.sql<{ requestId: string }>(
      'SELECT "requestId" FROM requests WHERE "saleId" = $1 AND "buyerId" = $2',
      [sale.id, buyerId],
    );
    expect(await inRedis(stores, sale, row?.requestId ?? "")).toMatchObject({ buyer: buyerId, stage });
  }
  expect(await checkSale(sluice, sale.id, HOUR)).toMatchObject({
    findings: [],
    uncompared: null,
    unfinished: { undecided: WAITING, eventsNotApplied: FAILED, pendingInRedis: WAITING },
  });
  const [due] = await stores.sql<{ count: number }>(
    'SELECT count(*)::int AS count FROM requests WHERE "saleId" = $1 AND outcome IS NULL AND "dueAt" <= now()',
    [sale.id],
  );
  expect(due?.count).toBe(WAITING);
}

/** A crowd in a few statements, as if it had come just now. */
async function fill(sale: TestSale): Promise<void> {
  await stores.sql(
    `WITH r AS (
       INSERT INTO requests ("saleId", "requestId", "buyerId", "itemId", quantity, epoch, seq, "acceptedAt", "dueAt",
                             "queuedEpoch", outcome, reason, "decidedAt")
       SELECT $1, gen_random_uuid(), 'b-' || n, $2, 1, 1, 1000000 + n, now(), now() + interval '1 hour', 1,
              (CASE WHEN n <= ${ORDERED} THEN 'ORDERED' WHEN n <= ${ORDERED + FAILED} THEN 'FAILED' END)::"RequestOutcome",
              (CASE WHEN n > ${ORDERED} AND n <= ${ORDERED + FAILED} THEN 'PROCESSING_FAILED' END)::"ReservationReason",
              CASE WHEN n <= ${ORDERED + FAILED} THEN now() END
       FROM generate_series(1, ${REQUESTS}) n RETURNING "requestId", "buyerId", outcome
     ), o AS (
       INSERT INTO orders ("saleId", "requestId", "buyerId", "activeBuyerId", "itemId", quantity, "totalMinor", currency, "payBy")
       SELECT $1, "requestId", "buyerId", "buyerId", $2, 1, 2500, 'EUR', now() + interval '1 hour' FROM r WHERE outcome = 'ORDERED'
     ), m AS (
       INSERT INTO stock_movements ("saleId", "itemId", "requestId", kind, quantity)
       SELECT $1, $2, "requestId", 'LOCK', 1 FROM r WHERE outcome = 'ORDERED'
     ), e AS (
       INSERT INTO request_events ("saleId", "requestId", epoch, "fromStage", "toStage", reason, units)
       SELECT $1, "requestId", 1, 'QUEUED', 'FAILED', 'PROCESSING_FAILED', 1 FROM r WHERE outcome = 'FAILED'
     )
     UPDATE sale_items SET available = available - ${ORDERED}, locked = locked + ${ORDERED} WHERE "saleId" = $1 AND id = $2`,
    [sale.id, sale.itemId],
  );
}

/** Buys in another sale, one after the other, until the load has ended: how long the slowest had to wait. */
async function serveUntil(loading: Promise<unknown>, neighbour: TestSale): Promise<number> {
  let loaded = false;
  const ended = () => {
    loaded = true;
  };
  void loading.then(ended, ended);
  let slowestMs = 0;
  for (let buyer = 0; !loaded && buyer < 100; buyer += 1) {
    const asked = performance.now();
    expect((await ask(sluice, neighbour, `n-${buyer}`)).kind).toBe("queued");
    slowestMs = Math.max(slowestMs, performance.now() - asked);
  }
  return slowestMs;
}

/** How often Redis ran scripts, and how long they held it. */
async function readRedisTimes() {
  const stats = await stores.client.info("commandstats");
  const [, calls = "", usec = ""] = /cmdstat_evalsha:calls=(\d+),usec=(\d+)/.exec(stats) ?? [];
  const slow = ((await stores.client.slowlog("GET", -1)) as [id: number, at: number, micros: number][]).map(
    ([, , micros]) => micros / 1_000,
  );
  return {
    calls: Number(calls),
    meanMs: Number(usec) / Number(calls) / 1_000,
    slow: slow.length,
    longestMs: slow.length > 0 ? Math.round(Math.max(...slow)) : "less than 20",
  };
}

/** The resources of a process, with the sizes of what its statements read and change outside of transactions. */
function watchStatements(resources: Resources) {
  const rows: number[] = [];
  const changes: number[] = [];
  const noting = <Result>(call: (...args: never[]) => Promise<Result>, note: (result: Result) => void) =>
    (async (...args: never[]) => {
      const result = await call(...args);
      note(result);
      return result;
    }) as typeof call;
  const reads = new Proxy(resources.reads, {
    get: (target, property) =>
      property === "$queryRaw"
        ? noting(target.$queryRaw.bind(target), (found) => void rows.push((found as unknown[]).length))
        : Reflect.get(target, property),
  });
  const db = new Proxy(resources.db, {
    get: (target, property) =>
      property === "$executeRaw"
        ? noting(target.$executeRaw.bind(target), (count) => void changes.push(count))
        : Reflect.get(target, property),
  });
  return { resources: { ...resources, reads, db }, rows, changes };
}

/** Rows of orders that statements have looked at so far, as the database counts them, a second late. */
async function countOrdersRead(): Promise<number> {
  const [row] = await stores.sql<{ count: number }>(
    `SELECT (coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::int AS count
     FROM pg_stat_user_tables WHERE relname = 'orders'`,
  );
  return row?.count ?? 0;
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0);
}
