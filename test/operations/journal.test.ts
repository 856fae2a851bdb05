import { randomUUID } from "node:crypto";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { SECOND } from "../../src/domain/time.js";
import { forward } from "../../src/operations/forward.js";
import { type JournalOutcome, journalGroup } from "../../src/operations/journal.js";
import { loadSale } from "../../src/operations/load.js";
import { writeOrders } from "../../src/operations/write-orders.js";
import type { Resources } from "../../src/resources.js";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy.js";
import { waitFor } from "../support/wait.js";
import { untilAllIsOld } from "./clocks.js";
import { transactionOnTheSide, waitForBlocked } from "./side.js";
import {
  acceptOnly,
  ask,
  epochInDatabase,
  inRedis,
  openProcess,
  openSale,
  queueOne,
  remaining,
  type Stores,
  startStores,
  type TestSale,
} from "./support.js";

let stores: Stores;
let sluice: Resources;
let other: Resources;
let sale: TestSale;

beforeAll(async () => {
  stores = await startStores();
  [sluice, other] = await Promise.all([openProcess(stores), openProcess(stores)]);
});

beforeEach(async () => {
  sale = await openSale(sluice, { initial: 10 });
});

const rowsOf = async () => (await stores.sql('SELECT 1 FROM requests WHERE "saleId" = $1', [sale.id])).length;

async function journal(by: Resources, rows: Parameters<typeof journalGroup>[2]): Promise<JournalOutcome[]> {
  const outcomes: JournalOutcome[] = [];
  await journalGroup(by, sale.id, rows, (given) => outcomes.push(...given));
  return outcomes;
}

describe("an accepted request", () => {
  it("that stands in a group twice is written once, and both callers hear so", async () => {
    const accepted = await acceptOnly(sluice, sale, "anna");
    const neighbour = await acceptOnly(sluice, sale, "bert");
    expect(await journal(sluice, [accepted, neighbour, accepted])).toEqual(Array(3).fill({ kind: "journaled" }));
    expect(await rowsOf()).toBe(2);
    expect(await sluice.queues.states(sale.id, [accepted.requestId])).toEqual(["waiting"]);
  });

  it("that several processes journal is written once, and all of them hear so", async () => {
    const accepted = await Promise.all(["anna", "bert", "carla"].map((buyerId) => acceptOnly(sluice, sale, buyerId)));
    const groups = [accepted, [...accepted].reverse(), accepted, [...accepted].reverse()];
    const outcomes = await Promise.all(groups.map((rows, at) => journal(at % 2 ? other : sluice, rows)));
    expect(outcomes.flat()).toEqual(Array(12).fill({ kind: "journaled" }));
    expect(await rowsOf()).toBe(3);
  });

  it("that is sent again while nobody knows what became of it becomes QUEUED, by whichever process", async () => {
    const { requestId } = await acceptOnly(sluice, sale, "anna");
    const answers = await Promise.all([sluice, other, sluice, other].map((by) => ask(by, sale, "anna", { requestId })));
    expect(answers.map(({ kind }) => kind)).toEqual(Array(4).fill("queued"));
    expect(await rowsOf()).toBe(1);
    await waitFor(async () => (await inRedis(stores, sale, requestId)).stage === "QUEUED", {
      what: "Redis to hear of it",
    });
    await writeOrders(sluice, sale.id, [requestId]);
    await stores.expectSound(sale);
  });

  it("whose row is of another acceptance is answered from the row, and the sale is loaded again", async () => {
    const requestId = await queueOne(sluice, sale, "anna");
    // Redis has lost it and takes its units a second time.
    await stores.client.del(`sluice:{${sale.id}}:r:${requestId}`);
    await stores.client.hdel(`sluice:{${sale.id}}:holders`, "anna");
    expect((await ask(sluice, sale, "anna", { requestId })).kind).toBe("queued");
    await sluice.loads.settled();
    expect(await epochInDatabase(stores, sale)).toBe(2);
    expect(await remaining(stores, sale)).toBe(9);

    await stores.client.del(`sluice:{${sale.id}}:r:${requestId}`);
    await stores.client.hdel(`sluice:{${sale.id}}:holders`, "anna");
    const [outcome] = await journal(sluice, [{ ...(await acceptOnly(sluice, sale, "anna", requestId)), quantity: 4 }]);
    expect(outcome).toMatchObject({ kind: "other", row: { requestId, quantity: 1, buyerId: "anna" } });
    await sluice.loads.settled();
    expect(await epochInDatabase(stores, sale)).toBe(3);
    await writeOrders(sluice, sale.id, [requestId]);
    await stores.expectSound(sale);
  });

  it("of an older epoch is refused in one group with present ones, which are written", async () => {
    const [older, kept] = [await acceptOnly(sluice, sale, "older"), await acceptOnly(sluice, sale, "kept")];
    expect(await journal(sluice, [kept])).toEqual([{ kind: "journaled" }]);
    await loadSale(sluice, sale.id, { reason: "drift", mendsEpoch: 1 });
    const newer = await acceptOnly(sluice, sale, "newer");
    expect(await journal(sluice, [older, newer, kept])).toEqual([
      { kind: "refused" },
      { kind: "journaled" },
      { kind: "journaled" },
    ]);
    await writeOrders(sluice, sale.id, [newer.requestId, kept.requestId]);
    await sluice.loads.settled();
    await stores.expectSound(sale);
  });

  it("whose time is over before it is journaled is PENDING, not an error: stock is held for it", async () => {
    const hasty = await openProcess(stores, { tuning: { deadlines: { requestMs: 300 } } });
    const fence = "SELECT pg_advisory_xact_lock(hashtextextended('sluice:fence:' || $1, 0))";
    const loader = await transactionOnTheSide(stores, fence, [sale.id]);
    const requestId = randomUUID();
    expect((await ask(hasty, sale, "anna", { requestId })).kind).toBe("pending");
    await loader.rollback();
    await waitFor(async () => (await ask(hasty, sale, "anna", { requestId })).kind === "queued", {
      what: "the repeat to be QUEUED",
    });
    expect(await rowsOf()).toBe(1);
    await writeOrders(sluice, sale.id, [requestId]);
    await stores.expectSound(sale);
  });

  it("that the database can't take fails alone: those beside it are written", async () => {
    const good = await Promise.all(["anna", "bert", "carla"].map((buyerId) => acceptOnly(sluice, sale, buyerId)));
    const bad = { ...(await acceptOnly(sluice, sale, "dora")), buyerId: "not an id of ours" };
    const [first, second, third] = good as [(typeof good)[0], (typeof good)[0], (typeof good)[0]];
    const outcomes = await journal(sluice, [first, bad, second, third]);
    expect(outcomes.map(({ kind }) => kind)).toEqual(["journaled", "failed", "journaled", "journaled"]);
    expect(await rowsOf()).toBe(3);
    expect(
      new Set(
        await sluice.queues.states(
          sale.id,
          good.map(({ requestId }) => requestId),
        ),
      ),
    ).toEqual(new Set(["waiting"]));
    expect(sluice.databaseHealth.isUp()).toBe(true);
  });

  it("that another buyer sends with the same id, after Redis has lost it, is a conflict", async () => {
    const requestId = await queueOne(sluice, sale, "anna");
    await stores.client.del(`sluice:{${sale.id}}:r:${requestId}`);
    expect((await ask(sluice, sale, "bert", { requestId })).kind).toBe("request_conflict");
    await sluice.loads.settled();
    expect((await ask(sluice, sale, "bert")).kind).toBe("queued");
    expect(await remaining(stores, sale)).toBe(8);
  });
});

describe("a sale's fence that somebody holds", () => {
  it("lets nothing through of the epoch before, though the journal began in it", async () => {
    const accepted = await acceptOnly(sluice, sale, "anna");
    const loader = await transactionOnTheSide(
      stores,
      "SELECT pg_advisory_xact_lock(hashtextextended('sluice:fence:' || $1, 0))",
      [sale.id],
    );
    const journaling = journal(other, [accepted]);
    await waitForBlocked(stores);
    await loader.query("UPDATE sales SET epoch = epoch + 1 WHERE id = $1", [sale.id]);
    await loader.commit();
    expect(await journaling).toEqual([{ kind: "refused" }]);
    expect(await rowsOf()).toBe(0);
    await other.loads.settled();
  });

  it("answers PENDING in time; the same request sent again becomes QUEUED", async () => {
    const side = await transactionOnTheSide(
      stores,
      "SELECT pg_advisory_xact_lock(hashtextextended('sluice:fence:' || $1, 0))",
      [sale.id],
    );
    const requestId = randomUUID();
    const started = performance.now();
    const answer = await ask(sluice, sale, "anna", { requestId });
    expect(answer).toMatchObject({ kind: "pending", reservation: { stage: "PENDING" } });
    expect(performance.now() - started).toBeLessThan(2 * SECOND);
    await side.rollback();
    await waitFor(async () => (await ask(sluice, sale, "anna", { requestId })).kind === "queued", {
      what: "the request to be queued",
    });
    expect(sluice.databaseHealth.isUp()).toBe(true);
    expect(await rowsOf()).toBe(1);
  });
});

describe("a database that is away", () => {
  let proxy: TcpProxy;
  let remote: Resources;

  beforeEach(async () => {
    proxy = await startTcpProxy(stores.databaseUrl);
    remote = await openProcess(stores, { databaseUrl: proxy.url(stores.databaseUrl) });
  });

  /** Sends again what was answered with anything else, until it is QUEUED. */
  async function untilQueued(buyerId: string, requestId: string) {
    await waitFor(async () => (await ask(remote, sale, buyerId, { requestId })).kind === "queued", {
      what: "the request to be queued",
      timeoutMs: 20_000,
    });
  }

  it("gets new requests refused before stock is touched, and repeats answered", async () => {
    const known = await queueOne(remote, sale, "anna");
    const decided = await queueOne(remote, sale, "bert");
    await writeOrders(remote, sale.id, [decided]);
    proxy.cut();
    await waitFor(() => !remote.databaseHealth.isUp(), { what: "the outage to be noticed" });
    const before = await stores.client.hgetall(`sluice:{${sale.id}}:sale`);
    await expect(ask(remote, sale, "carla")).rejects.toMatchObject({ code: "SERVICE_UNAVAILABLE" });
    expect(await remaining(stores, sale)).toBe(8);
    expect(await stores.client.hgetall(`sluice:{${sale.id}}:sale`)).toEqual(before);
    expect((await ask(remote, sale, "anna", { requestId: known })).kind).toBe("queued");
    expect((await ask(remote, sale, "bert", { requestId: decided })).kind).toBe("decided");
    proxy.heal();
    await untilQueued("carla", randomUUID());
  });

  for (const fault of ["cut", "blackhole", "swallowReplies"] as const) {
    it(`(${fault}) while nobody has noticed: an answer within two seconds, QUEUED once it is back`, async () => {
      const requestIds = Array.from({ length: 20 }, () => randomUUID());
      await queueOne(remote, sale, "early");
      proxy[fault]();
      const answers = await Promise.all(
        requestIds.slice(0, 9).map(async (requestId, at) => {
          const started = performance.now();
          const kind = await ask(remote, sale, `b-${at}`, { requestId }).then(
            (outcome) => outcome.kind,
            (error) => error.code,
          );
          return { kind, ms: performance.now() - started };
        }),
      );
      for (const { kind, ms } of answers) {
        expect(["pending", "SERVICE_UNAVAILABLE"]).toContain(kind);
        expect(ms).toBeLessThan(2_300);
      }
      await waitFor(() => !remote.databaseHealth.isUp(), { what: "the outage to be noticed" });
      proxy.heal();
      for (const [at, requestId] of requestIds.slice(0, 9).entries()) await untilQueued(`b-${at}`, requestId);
      await remote.journal.drained();
      const rows = await stores.sql<{ requestId: string }>('SELECT "requestId" FROM requests WHERE "saleId" = $1', [
        sale.id,
      ]);
      expect(rows).toHaveLength(10);
      await writeOrders(
        sluice,
        sale.id,
        rows.map((row) => row.requestId),
      );
      await stores.expectSound(sale);
    });
  }

  it("leaves what it accepted to the forwarder, should nobody send it again", async () => {
    const requestId = randomUUID();
    proxy.cut();
    const answer = await ask(remote, sale, "anna", { requestId }).catch((error) => error);
    expect([answer.kind, answer.code]).toContainEqual(answer.kind ? "pending" : "SERVICE_UNAVAILABLE");
    const held = await inRedis(stores, sale, requestId);
    const hasty = await openProcess(stores, { tuning: { repairAfterMs: 1 } });
    await untilAllIsOld(stores, hasty);
    await forward(hasty, sale.id, 1, 0);
    await hasty.journal.drained();
    expect(await rowsOf()).toBe(held.stage === "PENDING" ? 1 : 0);
    proxy.heal();
  });
});
