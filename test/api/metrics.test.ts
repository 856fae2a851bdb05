import { randomUUID } from "node:crypto";
import type { GraphQLEnumType } from "graphql";
import { Redis } from "ioredis";
import pg from "pg";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { schema } from "../../src/graphql/schema.js";
import { type Scrape, scrapeApi, scrapeWorker } from "../support/metrics.js";
import { operate } from "../support/operate.js";
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
import { subscribe, TRANSPORTS } from "../support/subscriptions.js";
import { atEndOfFile } from "../support/test-file.js";
import { waitFor } from "../support/wait.js";

const MEASURING = { loops: { measureMs: 100 }, repairAfterMs: 1_000 };

let sluice: TestSluice;
let redis: Redis;
let buyers = 0;
const holding = new Set<() => Promise<void>>();

beforeAll(async () => {
  sluice = await prepareSluice();
  redis = new Redis(sluice.redis.url);
  redis.on("error", () => {});
  atEndOfFile(() => redis.disconnect());
});

afterEach(async () => {
  sluice.redis.thaw();
  for (const release of [...holding]) await release();
});

const startWorker = (tuning: object = MEASURING) =>
  sluice.startWorker({ METRICS_PORT: "0", SLUICE_TUNING: JSON.stringify(tuning) });

function buyer(): Promise<string> {
  buyers += 1;
  return sluice.token("buyer", `secretive-buyer-${buyers}`);
}

/** A request that is durable, sent again as often as a client would. */
async function queued(api: Api, sale: TestSale): Promise<{ token: string; requestId: string }> {
  const request = { token: await buyer(), requestId: randomUUID() };
  await waitFor(
    async () => {
      const { data, errors } = await reserve(api, request.token, sale, { requestId: request.requestId });
      if (errors) throw new Error(JSON.stringify(errors));
      return data?.reserve.status === "QUEUED";
    },
    { what: "a request to be QUEUED", timeoutMs: 30_000 },
  );
  return request;
}

/** Holds rows or a lock until it is let go, as a transaction that hangs does. */
async function hold(statement: string, values: unknown[]): Promise<() => Promise<void>> {
  const client = new pg.Client(sluice.databaseUrl);
  await client.connect();
  await client.query("BEGIN");
  await client.query(statement, values);
  const release = async () => {
    if (holding.delete(release)) await client.end();
  };
  holding.add(release);
  return release;
}

/** Scrapes a worker until its figures look so. */
function untilFigures(worker: NodeProcess, looksSo: (figures: Scrape) => boolean, what: string): Promise<Scrape> {
  return waitFor(
    async () => {
      const figures = await scrapeWorker(worker);
      if (!looksSo(figures)) throw new Error(`so far ${figures.text.match(/^sluice_.*sale=.*$/gm)?.join("; ")}`);
      return figures;
    },
    { what, timeoutMs: 30_000 },
  );
}

describe("what the API counts", () => {
  it("are all answers of reserve, each with its outcome, and with its sale where there is one", async () => {
    const api = await sluice.startApi({ BACKLOG_LIMIT: "2" });
    const expected: Record<string, number> = {};
    const statuses = new Set<string>();
    const ask = async (sale: TestSale, label: string, token: string, input: Parameters<typeof reserve>[3] = {}) => {
      const { data, errors } = await reserve(api, token, sale, input);
      const outcome = data?.reserve?.status ?? errors?.[0]?.extensions.code ?? "nothing";
      statuses.add(outcome);
      const series = `${label} ${outcome.toLowerCase()}`;
      expected[series] = (expected[series] ?? 0) + 1;
      return outcome;
    };

    const sale = await sluice.createSale(api, { initial: [50, 1, 0] });
    const [, single, none] = sale.items.map(({ id }) => ({ itemId: id }));
    const first = { token: await buyer(), requestId: randomUUID() };
    await ask(sale, sale.id, first.token, { requestId: first.requestId });
    await ask(sale, sale.id, first.token, { requestId: first.requestId });
    await ask(sale, sale.id, first.token, { requestId: first.requestId, quantity: 2 });
    await ask(sale, sale.id, first.token);
    await ask(sale, sale.id, await buyer(), { quantity: 3 });
    await ask(sale, sale.id, await buyer(), { ...single, quantity: 2 });
    await ask(sale, sale.id, await buyer(), none);
    await ask(sale, sale.id, await buyer(), { quantity: 0 });
    await ask(sale, sale.id, await buyer(), { itemId: "no-such-item" });
    await ask({ id: "no-such-sale", items: [] }, "", await buyer(), { itemId: "no-such-item" });
    await ask({ id: "not an id", items: [] }, "", await buyer(), { itemId: "no-such-item" });

    // A journal that waits for somebody else's lock, with a connection of its pool in its hands.
    const release = await hold("SELECT pg_advisory_xact_lock(hashtextextended('sluice:fence:' || $1, 0))", [sale.id]);
    const pending = ask(sale, sale.id, await buyer());
    await waitFor(
      async () => {
        const figures = await scrapeApi(sluice, api);
        const inUse = figures.value("sluice_pool_connections", { pool: "sale", state: "in_use" }) ?? 0;
        return inUse >= 1 && figures.value("sluice_reserves_in_flight") === 1;
      },
      { what: "the waiting reservation to be told" },
    );
    expect(await pending).toBe("PENDING");
    await release();
    await ask(sale, sale.id, await buyer());

    const worker = await startWorker();
    await waitUntilDecided(api, first.token, sale.id, first.requestId);
    await ask(sale, sale.id, first.token, { requestId: first.requestId });
    worker.kill();
    const later = await sluice.createSale(api, { opensAt: new Date(Date.now() + 1_800_000) });
    await ask(later, later.id, await buyer());
    const draft = await sluice.createSale(api, { open: false });
    await ask(draft, draft.id, await buyer());
    await operate(sluice, api, "pauseSale", sale);
    await ask(sale, sale.id, await buyer());
    await operate(sluice, api, "closeSale", sale);
    await ask(sale, sale.id, await buyer());
    sluice.redis.freeze();
    await ask(sale, sale.id, await buyer());
    sluice.redis.thaw();

    const everyStatus = (schema.getType("ReserveStatus") as GraphQLEnumType).getValues().map(({ name }) => name);
    expect([...statuses].sort()).toEqual([...everyStatus, "BAD_USER_INPUT", "NOT_FOUND", "SERVICE_UNAVAILABLE"].sort());
    const figures = await scrapeApi(sluice, api);
    const told = figures.find("sluice_reservations_total");
    expect(Object.fromEntries(told.map(({ labels, value }) => [`${labels.sale} ${labels.outcome}`, value]))).toEqual(
      expected,
    );
    for (const outcome of statuses) {
      const labels = { outcome: outcome.toLowerCase() };
      const count = figures.value("sluice_reservations_total", labels);
      expect(figures.value("sluice_reserve_duration_seconds_count", labels), outcome).toBe(count);
      expect(figures.value("sluice_reserve_duration_seconds_sum", labels), outcome).toBeGreaterThan(0);
    }
    expect(figures.value("sluice_reserve_duration_seconds_sum", { outcome: "pending" })).toBeGreaterThan(0.9);
    expect(figures.value("sluice_reserves_in_flight")).toBe(0);
    expect(figures.value("sluice_http_requests_in_flight"), "the scrape itself").toBe(1);
    await sluice.endProcesses();
  }, 120_000);

  it("are subscriptions, by field and transport, and the sockets that carry them; all back to none when they are closed", async () => {
    const api = await sluice.startApi();
    const sale = await sluice.createSale(api);
    const { token, requestId } = await queued(api, sale);
    const operations = [
      { query: "subscription ($id: ID!) { saleUpdates(saleId: $id) { version } }", variables: { id: sale.id } },
      {
        query: `subscription Mine($id: ID!, $r: UUID!) { ...Root }
          fragment Root on Subscription { ... on Subscription { mine: reservationUpdates(saleId: $id, requestId: $r) { status } } }`,
        variables: { id: sale.id, r: requestId },
      },
    ];
    const open = TRANSPORTS.flatMap((transport) =>
      operations.map((operation) => subscribe<object>(transport, api, token, operation)),
    );
    for (const subscription of open) await subscription.next();

    const during = await scrapeApi(sluice, api);
    for (const field of ["saleUpdates", "reservationUpdates"]) {
      for (const transport of ["websocket", "sse"]) {
        expect(during.value("sluice_subscriptions_open", { field, transport }), `${field} by ${transport}`).toBe(1);
      }
    }
    expect(during.find("sluice_subscriptions_open")).toHaveLength(4);
    expect(during.value("sluice_websocket_connections")).toBe(2);
    expect(during.value("sluice_http_requests_in_flight"), "two streams and the scrape").toBe(3);

    for (const subscription of open) subscription.close();
    await waitFor(
      async () => {
        const after = await scrapeApi(sluice, api);
        return (
          after.value("sluice_subscriptions_open") === 0 &&
          after.value("sluice_websocket_connections") === 0 &&
          after.value("sluice_http_requests_in_flight") === 1
        );
      },
      { what: "nothing to be open" },
    );
    await sluice.endProcesses();
  });

  it("gets no series from ids that clients make up", async () => {
    const api = await sluice.startApi();
    const token = await buyer();
    const madeUp: string[] = [];
    const makeUp = async () => {
      const id = randomUUID().replaceAll("-", "");
      madeUp.push(id);
      const { errors } = await reserve(api, token, { id, items: [] }, { itemId: randomUUID() });
      const query =
        "query ($s: ID!, $r: UUID!) { sale(id: $s) { id } reservation(saleId: $s, requestId: $r) { status } }";
      await api.call(token, query, { s: id, r: randomUUID() });
      const subscription = "subscription ($id: ID!) { saleUpdates(saleId: $id) { version } }";
      await subscribe("SSE", api, null, { query: subscription, variables: { id } }).done;
      return errors?.[0]?.extensions.code;
    };
    for (let at = 0; at < 10; at += 1) await makeUp();
    await waitFor(async () => (await makeUp()) === "NOT_FOUND", { what: "the sale not to be found" });

    const { text, find } = await scrapeApi(sluice, api);
    for (const id of madeUp) expect(text).not.toContain(id);
    expect(find("sluice_reservations_total", { outcome: "not_found" }).map(({ labels }) => labels.sale)).toEqual([""]);
    expect([...text.matchAll(/sale="([^"]*)"/g)].map(([, sale]) => sale).filter(Boolean)).toEqual([]);
    await sluice.endProcesses();
  });
});

describe("what a worker tells of a sale", () => {
  let api: Api;
  let sale: TestSale;
  let worker: NodeProcess;
  const workers: NodeProcess[] = [];
  beforeAll(async () => {
    api = await sluice.startApi({ SLUICE_TUNING: JSON.stringify(MEASURING) });
    worker = await startWorker({ ...MEASURING, loops: { ...MEASURING.loops, relayMs: 3_600_000 } });
    workers.push(worker);
    return () => sluice.endProcesses();
  });

  it("grows while no order can be written, and is nothing again when all are", async () => {
    sale = await sluice.createSale(api, { initial: [40, 2] });
    const settled = await untilFigures(worker, ofSale(QUIET), "a quiet sale");

    const requests: { token: string; requestId: string }[] = [];
    const letGo = await holdStock();
    for (let at = 0; at < 5; at += 1) requests.push(await queued(api, sale));

    const waiting = await untilFigures(
      worker,
      ofSale({
        sluice_pending_requests: 5,
        sluice_undecided_requests: 5,
        sluice_queue_jobs: 5,
        sluice_remaining_units: 37,
      }),
      "five waiting requests",
    );
    const age = waiting.value("sluice_oldest_undecided_age_seconds", { sale: sale.id }) ?? 0;
    expect(age).toBeGreaterThan(0);
    await untilFigures(worker, (figures) => ageOf(figures) > age + 0.5, "the oldest to grow older");
    await untilFigures(
      worker,
      (figures) => (figures.value("sluice_pool_connections", { pool: "sale", state: "in_use" }) ?? 0) > 0,
      "a connection in use",
    );
    await letGo();

    for (const { token, requestId } of requests) await waitUntilDecided(api, token, sale.id, requestId);
    const after = await untilFigures(worker, ofSale({ ...QUIET, sluice_remaining_units: 37 }), "none to wait");
    expect(after.value("sluice_decided_total", { sale: sale.id, outcome: "ordered" })).toBe(5);
    const grownBy = (name: string) => (after.value(name) ?? 0) - (settled.value(name) ?? 0);
    // Of all sales: what an earlier test has left may become an order in between.
    expect(grownBy("sluice_acceptance_to_order_seconds_count")).toBeGreaterThanOrEqual(5);
    expect(grownBy("sluice_acceptance_to_order_seconds_sum")).toBeGreaterThan(0.5);
    expect(after.value("sluice_write_duration_seconds_count")).toBeGreaterThan(0);
  }, 90_000);

  it("are requests that the forwarder can't get at, as overdue, and parked ones apart from the age of the oldest", async () => {
    const letGo = await holdStock();
    const { token, requestId } = await queued(api, sale);
    const free = await hold(`SELECT 1 FROM requests WHERE "saleId" = $1 AND "requestId" = $2 FOR UPDATE`, [
      sale.id,
      requestId,
    ]);
    await letGo();
    await untilFigures(worker, ofSale({ sluice_overdue_requests: 1, sluice_parked_requests: 0 }), "an overdue request");
    await free();
    await waitUntilDecided(api, token, sale.id, requestId);
    await untilFigures(
      worker,
      ofSale({ sluice_overdue_requests: 0, sluice_undecided_requests: 0 }),
      "none to be overdue",
    );

    await query(
      sluice.databaseUrl,
      `INSERT INTO requests ("saleId", "requestId", "buyerId", "itemId", quantity, epoch, seq, "acceptedAt", "dueAt", "queuedEpoch", "parkedAt")
       SELECT id, $2, 'secretive-parked', $3, 1, epoch, 1, now() - interval '1 hour', now(), epoch, now() FROM sales WHERE id = $1`,
      [sale.id, randomUUID(), sale.items[0]?.id],
    );
    const parked = await untilFigures(
      worker,
      ofSale({ sluice_parked_requests: 1, sluice_undecided_requests: 1 }),
      "a parked request",
    );
    expect(ageOf(parked)).toBe(0);
    expect(parked.value("sluice_overdue_requests", { sale: sale.id })).toBe(0);
    await query(sluice.databaseUrl, `DELETE FROM requests WHERE "saleId" = $1 AND "parkedAt" IS NOT NULL`, [sale.id]);
  }, 90_000);

  it("are events that nobody carries, and how old they get", async () => {
    const { token, requestId } = await queued(api, sale);
    await waitUntilDecided(api, token, sale.id, requestId);
    await query(
      sluice.databaseUrl,
      `INSERT INTO request_events ("saleId", "requestId", epoch, "fromStage", "toStage", reason, units)
       SELECT id, $2, epoch, 'ORDERED', 'CANCELLED', 'CANCELLED_BY_OPERATOR', 0 FROM sales WHERE id = $1`,
      [sale.id, requestId],
    );
    const first = await untilFigures(worker, ofSale({ sluice_unapplied_events: 1 }), "an event that was not applied");
    const age = first.value("sluice_oldest_unapplied_event_age_seconds", { sale: sale.id }) ?? 0;
    await untilFigures(
      worker,
      (figures) => (figures.value("sluice_oldest_unapplied_event_age_seconds", { sale: sale.id }) ?? 0) > age + 0.3,
      "the event to grow older",
    );
    const carrier = await startWorker();
    workers.push(carrier);
    await untilFigures(
      worker,
      ofSale({ sluice_unapplied_events: 0, sluice_oldest_unapplied_event_age_seconds: 0 }),
      "it to be carried",
    );
    expect((await scrapeWorker(carrier)).value("sluice_request_events_total", { outcome: "applied" })).toBe(1);
  }, 90_000);

  it("is what the database refuses too, as sold out, drift and a load", async () => {
    const [, scarce] = sale.items.map(({ id }) => id);
    await redis.hset(`sluice:{${sale.id}}:stock`, scarce ?? "", 3);
    const answers = await Promise.all(
      [1, 2, 3].map(async () => {
        const request = { token: await buyer(), requestId: randomUUID() };
        await reserve(api, request.token, sale, { itemId: scarce ?? "", requestId: request.requestId });
        return waitUntilDecided(api, request.token, sale.id, request.requestId);
      }),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual(["SOLD_OUT", "SUCCESS", "SUCCESS"]);
    const loads = { reason: "drift", outcome: "loaded" };
    await waitFor(
      async () => {
        const all = await Promise.all(workers.map(scrapeWorker));
        const sum = (name: string, labels: Record<string, string>) =>
          all.reduce((total, figures) => total + (figures.value(name, labels) ?? 0), 0);
        return (
          sum("sluice_decided_total", { sale: sale.id, outcome: "sold_out" }) === 1 &&
          sum("sluice_drift_total", { stage: "drift" }) >= 1 &&
          sum("sluice_loads_total", loads) >= 1 &&
          sum("sluice_load_duration_seconds_count", {}) >= 1
        );
      },
      { what: "the drift to be told", timeoutMs: 30_000 },
    );
  }, 90_000);

  it("is gone with all its series when the sale is no longer watched", async () => {
    const other = await sluice.createSale(api);
    await untilFigures(worker, (figures) => figures.text.includes(other.id), "the other sale");
    expect((await scrapeWorker(worker)).text).toContain(sale.id);
    await operate(sluice, api, "closeSale", sale);
    await untilFigures(
      worker,
      (figures) => figures.find("sluice_queue_jobs", { sale: sale.id }).length === 0,
      "no queue",
    );
    expect((await scrapeWorker(worker)).find("sluice_undecided_requests", { sale: sale.id })).toHaveLength(1);

    await query(
      sluice.databaseUrl,
      `UPDATE sales SET "opensAt" = now() - interval '9 days', "closesAt" = now() - interval '8 days' WHERE id = $1`,
      [sale.id],
    );
    const after = await untilFigures(worker, (figures) => !figures.text.includes(sale.id), "the sale to be forgotten");
    expect(after.find("sluice_undecided_requests").map(({ labels }) => labels.sale)).toContain(other.id);
  }, 60_000);

  it("never is a buyer or a request", async () => {
    expect(buyers).toBeGreaterThan(0);
    for (const { text } of [await scrapeApi(sluice, api), ...(await Promise.all(workers.map(scrapeWorker)))]) {
      expect(text).not.toContain("secretive");
      expect(text).not.toMatch(/[0-9a-f]{8}-[0-9a-f]{4}/);
    }
  });

  /** Whoever wants to decide needs the rows of the stock. */
  const holdStock = () => hold(`SELECT 1 FROM sale_items WHERE "saleId" = $1 FOR UPDATE`, [sale.id]);

  const QUIET = {
    sluice_pending_requests: 0,
    sluice_undecided_requests: 0,
    sluice_oldest_undecided_age_seconds: 0,
    sluice_overdue_requests: 0,
    sluice_parked_requests: 0,
    sluice_unapplied_events: 0,
    sluice_oldest_unapplied_event_age_seconds: 0,
    sluice_queue_jobs: 0,
    sluice_remaining_units: 42,
  };
  const ofSale = (wanted: Partial<typeof QUIET>) => (figures: Scrape) =>
    Object.entries(wanted).every(([name, value]) => figures.value(name, { sale: sale.id }) === value);
  const ageOf = (figures: Scrape) => figures.value("sluice_oldest_undecided_age_seconds", { sale: sale.id }) ?? -1;
});
