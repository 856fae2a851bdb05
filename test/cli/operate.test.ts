/** The operators' commands, on real stores, with no API about. */
import { randomUUID } from "node:crypto";
import { beforeAll, describe, expect, it } from "vitest";
import { runLine } from "../../src/cli/operate/run-line.js";
import { loadConfig } from "../../src/config.js";
import { orderIdOf } from "../../src/domain/ids.js";
import { bury } from "../../src/operations/bury.js";
import { pay } from "../../src/operations/pay.js";
import { relay } from "../../src/operations/relay.js";
import { writeOrders } from "../../src/operations/write-orders.js";
import type { Resources } from "../../src/resources.js";
import { finished } from "../house/run.js";
import {
  environmentOf,
  makeDraft,
  openProcess,
  openSale,
  order,
  type ProcessOptions,
  queueOne,
  remaining,
  type Stores,
  saleField,
  startStores,
  type TestSale,
} from "../operations/support.js";
import { startTcpProxy } from "../support/tcp-proxy.js";

let stores: Stores;
let sluice: Resources;

beforeAll(async () => {
  stores = await startStores();
  sluice = await openProcess(stores);
});

interface Typed {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command line in here. */
async function type(args: readonly string[], options: ProcessOptions = {}): Promise<Typed> {
  const said = { stdout: [] as string[], stderr: [] as string[] };
  const code = await runLine(args, {
    config: () => loadConfig(environmentOf(stores, options)),
    out: (text) => void said.stdout.push(text),
    err: (text) => void said.stderr.push(text),
  });
  return { code, stdout: said.stdout.join(""), stderr: said.stderr.join("") };
}

/** As somebody types it at night: a process, without a secret of the API. Whatever is logged must not get into what it prints. */
function typeAlone(args: readonly string[], options: ProcessOptions = {}): Promise<Typed> {
  const env = { ...environmentOf(stores, options), JWT_SECRET: "", LOG_LEVEL: "trace" };
  return finished(process.execPath, ["--import", "tsx", "src/cli/sluice.ts", ...args], { env });
}

/** Runs a command for machines: what it printed on each stream, parsed. */
async function ask(...args: string[]) {
  const { code, stdout, stderr } = await type([...args, "--json"]);
  return { code, document: stdout && JSON.parse(stdout), error: stderr && JSON.parse(stderr).error };
}

const audited = (sale: TestSale) =>
  stores.sql<{ actor: string; action: string; reason: string | null }>(
    'SELECT actor, action, reason FROM audit_entries WHERE "saleId" = $1 ORDER BY id',
    [sale.id],
  );
const letters = (sale: TestSale) =>
  stores.sql<{ id: string; requestId: string; status: string }>(
    'SELECT id::text, "requestId", status FROM dead_letters WHERE "saleId" = $1 ORDER BY id',
    [sale.id],
  );

/** Buyers whose requests were given up, each with a letter. */
async function givenUp(sale: TestSale, buyers: readonly string[]): Promise<string[]> {
  const requestIds: string[] = [];
  for (const buyer of buyers) {
    const requestId = await queueOne(sluice, sale, buyer);
    await bury(sluice, sale.id, [
      { requestId, stage: "write", lastError: "no room\u001b[2J\non the disk", attempts: 5 },
    ]);
    requestIds.push(requestId);
  }
  return requestIds;
}

describe("sales", () => {
  it("are opened, paused, resumed and closed in both stores, on record with who and why", async () => {
    const sale = await makeDraft(sluice, { initial: 7 });
    const opened = await typeAlone(["open", sale.id, "--actor", "olga"]);
    expect(opened).toEqual({ code: 0, stderr: "", stdout: "The sale is OPEN, in the database and in Redis.\n" });
    expect(await remaining(stores, sale)).toBe(7);

    const paused = await ask("pause", sale.id, "--reason", "a wrong price", "--actor", "olga");
    expect(paused).toMatchObject({ code: 0, document: { saleId: sale.id, state: "PAUSED" }, error: "" });
    expect(await saleField(stores, sale, "state")).toBe("PAUSED");

    const [listed, table] = await Promise.all([ask("sales", "--state", "paused"), type(["sales", "--limit", "1"])]);
    expect(listed.document).toMatchObject({
      sales: [
        { id: sale.id, state: "PAUSED", inRedis: "loaded", inLine: 0, items: [{ id: sale.itemId, remaining: 7 }] },
      ],
      more: false,
    });
    const [header = "", line = ""] = table.stdout.split("\n");
    expect(line.slice(header.indexOf("STATE"))).toMatch(/^PAUSED {2,}\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ/);
    expect(line.slice(header.indexOf("ITEM"))).toMatch(/^\S+ {2,}SHIRT {2,}7 {2,}7 {2,}A drop$/);

    expect((await type(["resume", sale.id])).code).toBe(0);
    expect(await saleField(stores, sale, "state")).toBe("OPEN");
    expect((await type(["close", sale.id])).code).toBe(0);
    expect(await type(["resume", sale.id])).toEqual({
      code: 1,
      stdout: "",
      stderr: "CONFLICT: A sale that is CLOSED can't resume.\n",
    });

    expect((await audited(sale)).slice(1, 3)).toEqual([
      { actor: "cli:olga", action: "openSale", reason: null },
      { actor: "cli:olga", action: "pauseSale", reason: "a wrong price" },
    ]);
    const log = await ask("audit", "--sale", sale.id, "--limit", "2");
    expect(log.document).toMatchObject({
      entries: [{ action: "closeSale", actor: expect.stringMatching(/^cli:/) }, { action: "resumeSale" }],
      more: true,
    });
  });

  it("have units put on sale and taken off", async () => {
    const sale = await openSale(sluice, { initial: 5 });
    const less = await type(["adjust", sale.id, sale.itemId, "-2", "--reason", "two are damaged"]);
    expect(less).toMatchObject({ code: 0, stdout: "2 units taken off sale: the item has 3 units in all now.\n" });
    expect(await remaining(stores, sale)).toBe(3);
    const tooMany = await ask("adjust", sale.id, sale.itemId, "-4", "--reason", "too many");
    expect(tooMany).toMatchObject({ code: 1, document: "", error: { code: "CONFLICT", message: expect.any(String) } });
    await stores.expectSound(sale);
  });
});

describe("reconcile", () => {
  it("names what is wrong, exits with 1 and repairs nothing; reload mends it", async () => {
    const sale = await openSale(sluice, { initial: 9 });
    await queueOne(sluice, sale, "anna");
    const sound = await type(["reconcile", sale.id]);
    expect(sound).toMatchObject({ code: 0, stderr: "" });
    expect(sound.stdout).toContain(`${sale.id}: S, U, C and T hold.\n  in flight: 1 undecided (0 of them given up)`);

    await stores.client.hincrby(`sluice:{${sale.id}}:stock`, sale.itemId, 2);
    const [told, counted] = await Promise.all([typeAlone(["reconcile", sale.id]), ask("reconcile", "--all")]);
    expect(told.code).toBe(1);
    expect(told.stdout).toContain(`${sale.id}: C broken. S, U and T hold.`);
    expect(told.stdout).toMatch(new RegExp(`${sale.itemId} +8 +10\n`));
    expect(told.stderr).toMatch(new RegExp(`^DRIFT: 1 finding in ${sale.id}\\.[^\n]*\n$`));
    expect(counted).toMatchObject({ code: 1, error: { code: "DRIFT" } });
    expect(counted.document.checks.find(({ saleId }: { saleId: string }) => saleId === sale.id)).toMatchObject({
      holds: false,
      findings: [{ invariant: "C", count: 1, offenders: [{ id: sale.itemId, expected: 8, actual: "10" }] }],
      uncompared: null,
      inFlight: { undecided: 1, pendingInRedis: 1 },
    });
    expect(await remaining(stores, sale)).toBe(10);

    const mended = await type(["reload", sale.id, "--reason", "C is broken", "--actor", "olga"]);
    expect(mended).toMatchObject({
      code: 0,
      stderr: "",
      stdout: expect.stringMatching(/^The sale is loaded again, as epoch \d+\.\n$/),
    });
    expect(await remaining(stores, sale)).toBe(8);
    expect((await audited(sale)).at(-1)).toEqual({ actor: "cli:olga", action: "reloadSale", reason: "C is broken" });
    expect((await type(["reconcile", sale.id])).code).toBe(0);
  });

  it("says that a sale is not loaded, which is no fault, and counts what waits for longer than it is told", async () => {
    const sale = await openSale(sluice);
    const requestId = await queueOne(sluice, sale, "anna");
    await stores.sql(`UPDATE requests SET "journaledAt" = now() - interval '30 seconds' WHERE "requestId" = $1`, [
      requestId,
    ]);
    await stores.client.del(`sluice:{${sale.id}}:sale`);
    const [patient, hasty] = await Promise.all([
      type(["reconcile", sale.id]),
      ask("reconcile", sale.id, "--bound", "20"),
    ]);
    expect(patient).toMatchObject({ code: 0, stdout: expect.stringContaining("the sale is not loaded in Redis") });
    expect(hasty).toMatchObject({
      code: 1,
      document: {
        checks: [{ uncompared: "not_loaded", findings: [{ invariant: "T", offenders: [{ id: requestId }] }] }],
      },
    });
  });
});

describe("dead letters", () => {
  it("are listed without what moves a cursor, replayed, compensated and discarded", async () => {
    const sale = await openSale(sluice, { initial: 5 });
    const [anna = "", bert = "", carl = ""] = await givenUp(sale, ["anna", "bert", "carl"]);
    const [first, second, third] = await letters(sale);
    const list = await type(["dead-letters", "--sale", sale.id]);
    expect(list.code).toBe(0);
    expect(list.stdout).not.toContain("\u001b");
    expect(list.stdout).toMatch(
      new RegExp(`${first?.id} +OPEN +${anna} +write +5 +[-\\d: ]+Z +- +no room \\[2J on the disk`),
    );

    const why = ["--reason", "there is room again", "--actor", "olga"];
    const replayed = await typeAlone(["replay", sale.id, first?.id ?? "", ...why]);
    expect(replayed).toEqual({
      code: 0,
      stderr: "",
      stdout: `Dead letter ${first?.id}, of request ${anna}, is REPLAYED.\n`,
    });
    expect(await sluice.queues.states(sale.id, [anna])).toEqual(["waiting"]);

    // What the writer has decided meanwhile can't be given up any more, and stands in nobody's way.
    await writeOrders(sluice, sale.id, [bert]);
    const compensated = await type(["compensate", sale.id, "--all", ...why]);
    expect(compensated.code).toBe(1);
    expect(compensated.stdout.split("\n")).toEqual([
      expect.stringMatching(
        new RegExp(`^Dead letter ${second?.id}, of request ${bert}, .*CONFLICT: .*decided meanwhile`),
      ),
      `Dead letter ${third?.id}, of request ${carl}, is COMPENSATED`,
      "1 dead letter ended.",
      "",
    ]);
    expect(compensated.stderr).toBe("CONFLICT: 1 dead letter could not be ended.\n");

    const discarded = await ask("discard", sale.id, second?.id ?? "", ...why);
    expect(discarded).toMatchObject({ code: 0, document: { id: second?.id, status: "DISCARDED", requestId: bert } });
    expect((await letters(sale)).map(({ status }) => status)).toEqual(["REPLAYED", "DISCARDED", "COMPENSATED"]);
    expect((await audited(sale)).at(-1)).toMatchObject({ actor: "cli:olga", action: "discardDeadLetter" });

    await writeOrders(sluice, sale.id, [anna]);
    await stores.expectSound(sale);
  });

  it("are all replayed by one command, also more than a page of them", async () => {
    const sale = await openSale(sluice, { initial: 300, maxPerBuyer: 1 });
    const buyers = Array.from({ length: 203 }, (_, at) => `buyer-${at}`);
    const requestIds = await Promise.all(buyers.map((buyer) => queueOne(sluice, sale, buyer)));
    const dead = requestIds.map((requestId) => ({ requestId, stage: "lost" as const, lastError: "lost", attempts: 5 }));
    await bury(sluice, sale.id, dead);
    const { code, document } = await ask("replay", sale.id, "--all", "--reason", "Redis is back");
    expect(code).toBe(0);
    expect(document.deadLetters).toHaveLength(203);
    expect(document.deadLetters[0]).toMatchObject({ saleId: sale.id, status: "REPLAYED", error: null });
    expect(new Set((await letters(sale)).map(({ status }) => status))).toEqual(new Set(["REPLAYED"]));
    expect((await ask("dead-letters", "--sale", sale.id)).document).toEqual({ deadLetters: [], more: false });
  });
});

describe("orders", () => {
  it("are cancelled, refunded and written off, with their money", async () => {
    const sale = await openSale(sluice, { initial: 5 });
    const [unpaid, paid] = [await order(sluice, sale, "anna"), await order(sluice, sale, "bert")];
    const [unpaidId, paidId] = [orderIdOf(sale.id, unpaid), orderIdOf(sale.id, paid)];
    await pay(sluice, { orderId: paidId, paymentRef: "pay_bert", amountMinor: 2_500 });
    await pay(sluice, { orderId: "nobody's", paymentRef: "pay_lost", amountMinor: 1 });

    const [cancelled, refunded] = await Promise.all([
      type(["cancel", unpaidId, "--reason", "asked for"]),
      ask("refund", paidId, "--reason", "damaged", "--actor", "olga"),
    ]);
    expect(cancelled).toEqual({ code: 0, stderr: "", stdout: "The order is CANCELLED.\n" });
    expect(refunded).toMatchObject({ code: 0, document: { id: paidId, status: "REFUND_PENDING" } });

    const due = await type(["refunds-due"]);
    expect(due.stdout).toMatch(/pay_lost +1 +nobody's +payment-refunded \(REFUND_DUE\)/);
    expect(due.stdout).toMatch(new RegExp(`pay_bert +2500 +${paidId} +refunded\n`));

    const [done, settled] = await Promise.all([
      type(["refunded", paidId, "re_1", "--write-off"]),
      ask("payment-refunded", "pay_lost", "re_2"),
    ]);
    expect(done).toMatchObject({ code: 0, stdout: "The order is REFUNDED.\n" });
    expect(settled).toMatchObject({ code: 0, document: { paymentRef: "pay_lost", refundRef: "re_2" } });
    expect((await ask("refunds-due")).document).toEqual({ refundsDue: [], more: false });
    expect(await ask("refunded", paidId, "re_1", "--restock")).toMatchObject({ code: 1, error: { code: "CONFLICT" } });
    expect(await stores.sql('SELECT initial, available FROM sale_items WHERE "saleId" = $1', [sale.id])).toEqual([
      { initial: 4, available: 4 },
    ]);
    await relay(sluice);
    await stores.expectSound(sale);
  });
});

describe("trace", () => {
  it("tells a request's life, also by its order's id, and that there is none", async () => {
    const sale = await openSale(sluice);
    const requestId = await order(sluice, sale, "anna");
    const [told, document, unknown] = await Promise.all([
      type(["trace", orderIdOf(sale.id, requestId)]),
      ask("trace", sale.id, requestId.toUpperCase()),
      type(["trace", sale.id, randomUUID()]),
    ]);
    expect(told).toMatchObject({ code: 0, stderr: "" });
    expect(told.stdout).toMatch(new RegExp(`^${sale.id}\\.${requestId} of anna\n`));
    expect(told.stdout).toMatch(/\n\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ +REDIS +accepted/);
    expect(told.stdout).not.toContain("Missing:");
    expect(document).toMatchObject({
      code: 0,
      document: { requestId, buyerId: "anna", stage: "ORDERED", missing: [] },
    });
    expect(unknown).toEqual({ code: 1, stdout: "", stderr: "NOT_FOUND: There is no such request.\n" });
  });
});

describe("what isn't there", () => {
  it.each([
    ["reconcile", ["reconcile", "elsewhere"]],
    ["a list of a sale", ["dead-letters", "--sale", "elsewhere"]],
    ["a dead letter", ["replay", "elsewhere", "1x", "--reason", "r"]],
  ])("is said in a line, with exit status 1: %s", async (_name, args) => {
    expect(await type(args)).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringMatching(/^NOT_FOUND: [^\n]+\n$/),
    });
  });

  it("is a store that is away: said within seconds, and what can be done without it is done", async () => {
    const sale = await openSale(sluice);
    const [requestId = ""] = await givenUp(sale, ["anna"]);
    const [redis, database] = await Promise.all([startTcpProxy(stores.redis.url), startTcpProxy(stores.databaseUrl)]);
    redis.blackhole();
    database.blackhole();
    const noRedis = { redisUrl: redis.url(stores.redis.url) };
    const noDatabase = { databaseUrl: database.url(stores.databaseUrl) };
    const since = performance.now();
    const [reconciled, paused, traced, listed] = await Promise.all([
      typeAlone(["reconcile", sale.id], noRedis),
      typeAlone(["pause", sale.id, "--reason", "Redis is away", "--json"], noRedis),
      typeAlone(["trace", sale.id, requestId], noDatabase),
      typeAlone(["dead-letters"], noDatabase),
    ]);
    expect(performance.now() - since).toBeLessThan(20_000);
    expect(reconciled).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringMatching(/^SERVICE_UNAVAILABLE: Redis is away: [^\n]+\n$/),
    });
    expect(listed).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringMatching(/^SERVICE_UNAVAILABLE: The database is away: [^\n]+\n$/),
    });
    expect(traced).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("Missing:\n- The database does not answer"),
    });
    // The database leads: the sale is paused, and Redis is told later.
    expect(paused).toMatchObject({ code: 1, stdout: "" });
    expect(JSON.parse(paused.stderr).error).toMatchObject({
      code: "SERVICE_UNAVAILABLE",
      message: expect.stringContaining("The sale is PAUSED"),
    });
    expect(await stores.sql("SELECT state FROM sales WHERE id = $1", [sale.id])).toEqual([{ state: "PAUSED" }]);
    const compensated = await type(["compensate", sale.id, "--all", "--reason", "Redis is away"], noRedis);
    expect(compensated.stdout).toContain("1 dead letter ended. Redis is away and hears of it as soon as it answers.");
  });
});
