/** Every command of docs/runbook.md, typed on a small system that is in the trouble of its section. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { orderIdOf } from "../../src/domain/ids.js";
import { bury } from "../../src/operations/bury.js";
import { loadSale } from "../../src/operations/load.js";
import { pay } from "../../src/operations/pay.js";
import { refundOrder } from "../../src/operations/refund.js";
import { relay } from "../../src/operations/relay.js";
import { writeOrders } from "../../src/operations/write-orders.js";
import type { Resources } from "../../src/resources.js";
import { PRICE } from "../operations/order-support.js";
import { transactionOnTheSide } from "../operations/side.js";
import {
  changeUntold,
  environmentOf,
  epochInDatabase,
  letPass,
  openProcess,
  openSale,
  order,
  queueOne,
  type Stores,
  saleField,
  startStores,
  type TestSale,
} from "../operations/support.js";
import { findProgram } from "../support/programs.js";
import { type Api, prepareSluice, reserve } from "../support/sluice.js";
import { makeTempDir } from "../support/test-file.js";
import { finished, root } from "./run.js";
import { type Block, blocksOf, openShell, type Shell, statusOf } from "./runbook.js";

const read = (path: string) => readFileSync(join(root, path), "utf8");
const blocks = blocksOf(read("docs/runbook.md"));
/** Where the operator is: what is written down there stays there. */
const cwd = makeTempDir("operator");

let stores: Stores;
let sluice: Resources;
let api: Api;
let shell: Shell;
let env: Record<string, string>;

beforeAll(async () => {
  stores = await startStores();
  const system = await prepareSluice({
    stores: { redis: stores.redis, database: { url: stores.databaseUrl, drop: async () => {} } },
  });
  const operator = await system.token("operator", "olga");
  [sluice, api] = await Promise.all([openProcess(stores), system.startApi()]);
  env = {
    ...environmentOf(stores),
    JWT_SECRET: system.env.JWT_SECRET ?? "",
    API: api.url,
    TOKEN: operator,
  };
  shell = await openShell(root, env);
  // An API tells only of answers that it has given.
  const sale = await openSale(sluice);
  await reserve(api, await system.token("buyer", "anna"), { id: sale.id, items: [{ id: sale.itemId }] });
  await leave(sale);
});

/** What the placeholders of a section stand for, and what is true when its commands were typed. */
interface Situation {
  readonly values: Record<string, string>;
  readonly afterwards?: () => Promise<void>;
}
type Make = (sale: TestSale, text: string) => Promise<Situation>;

const SITUATIONS: Record<string, Make> = {
  async SluiceInvariantBroken(sale, text) {
    const requestId = await order(sluice, sale, "anna");
    await stores.client.hincrby(`sluice:{${sale.id}}:stock`, sale.itemId, 2);
    return {
      values: { REQUEST: requestId },
      afterwards: async () => {
        if (text.includes(" reload ")) await stores.expectSound(sale);
        if (text.includes(" pause ")) expect(await saleField(stores, sale, "state")).toBe("PAUSED");
      },
    };
  },
  SluiceOldestUndecided: (sale) => waiting(sale),
  SluiceParkedRequests: (sale, text) => givenUp(sale, text),
  SluiceDeadLetters: (sale, text) => givenUp(sale, text),
  async SluiceUnpaidOverdue(sale) {
    const requestId = await order(sluice, sale, "anna");
    await letPass(stores, sale);
    return { values: { ORDER: orderIdOf(sale.id, requestId) } };
  },
  async SluicePaymentUnreadable(sale, text) {
    const requestId = await order(sluice, sale, "anna");
    return {
      values: { ORDER: orderIdOf(sale.id, requestId) },
      afterwards: async () => {
        if (text.includes("confirmPayment"))
          expect(await stores.sql('SELECT status FROM orders WHERE "saleId" = $1', [sale.id])).toEqual([
            { status: "PAID" },
          ]);
      },
    };
  },
  async SluiceOverdueRequests(sale, text) {
    const { values } = await waiting(sale);
    const side = await transactionOnTheSide(stores, 'SELECT 1 FROM requests WHERE "saleId" = $1 FOR UPDATE', [sale.id]);
    const { rows } = await side.query("SELECT pg_backend_pid()::text AS pid");
    const [{ pid }] = rows as [{ pid: string }];
    const isThere = async () =>
      (await stores.sql("SELECT 1 FROM pg_stat_activity WHERE pid = $1", [Number(pid)])).length;
    return {
      values: { ...values, PID: pid },
      afterwards: async () => {
        if (text.includes("pg_terminate_backend")) expect(await isThere()).toBe(0);
        else await side.rollback();
      },
    };
  },
  async SluiceEventsNotApplied(sale, text) {
    const requestId = await order(sluice, sale, "anna");
    await changeUntold(sluice, sale, requestId);
    return {
      values: { ORDER: orderIdOf(sale.id, requestId) },
      afterwards: async () => {
        if (text.includes(" reload ")) await stores.expectSound(sale);
      },
    };
  },
  async SluiceRefundsDue(sale) {
    const requestId = await order(sluice, sale, "anna");
    const orderId = orderIdOf(sale.id, requestId);
    const PAYMENT = `pay_late_${requestId}`;
    await pay(sluice, { orderId, paymentRef: `pay_${requestId}`, amountMinor: PRICE });
    await pay(sluice, { orderId, paymentRef: PAYMENT, amountMinor: PRICE });
    await refundOrder(sluice, { orderId, reason: "it broke", actor: "olga" });
    return { values: { ORDER: orderId, PAYMENT } };
  },
};

/** A request that has been waiting for a minute. */
async function waiting(sale: TestSale): Promise<Situation> {
  const requestId = await queueOne(sluice, sale, "anna");
  await stores.sql(`UPDATE requests SET "journaledAt" = now() - interval '1 minute' WHERE "requestId" = $1`, [
    requestId,
  ]);
  return { values: { REQUEST: requestId } };
}

/** Two requests that were given up. Where a letter is to be discarded, theirs were decided meanwhile. */
async function givenUp(sale: TestSale, text: string): Promise<Situation> {
  const requestIds = [await queueOne(sluice, sale, "anna"), await queueOne(sluice, sale, "bert")];
  const letters = requestIds.map((requestId) => ({
    requestId,
    stage: "write" as const,
    lastError: "no room",
    attempts: 5,
  }));
  await bury(sluice, sale.id, letters);
  if (text.includes(" discard ")) await writeOrders(sluice, sale.id, requestIds);
  const open = () =>
    stores.sql<{ id: string; requestId: string }>(
      `SELECT id::text, "requestId" FROM dead_letters WHERE "saleId" = $1 AND status = 'OPEN' ORDER BY id`,
      [sale.id],
    );
  const [{ id, requestId } = { id: "", requestId: "" }] = await open();
  return {
    values: { LETTER: id, REQUEST: requestId },
    afterwards: async () => {
      if (text.includes(" --all ")) expect(await open()).toEqual([]);
      if (text.includes(" discard ")) expect(await open()).toHaveLength(1);
    },
  };
}

/** Brings everything of the sale to its end, and finds it sound: nothing that was typed has done harm. */
async function leave(sale: TestSale): Promise<void> {
  const undecided = await stores.sql<{ requestId: string }>(
    'SELECT "requestId" FROM requests WHERE "saleId" = $1 AND outcome IS NULL',
    [sale.id],
  );
  await writeOrders(
    sluice,
    sale.id,
    undecided.map(({ requestId }) => requestId),
  );
  await relay(sluice);
  await loadSale(sluice, sale.id, { reason: "asked", mendsEpoch: await epochInDatabase(stores, sale) });
  await stores.expectSound(sale);
}

/** Types a script, and tells its exit status with all that was said. */
async function type(script: string, values: Record<string, string> = {}) {
  const before = shell.errors.length;
  const told = await finished("bash", ["-c", `${shell.prelude}\n${script}`], { env: { ...env, ...values }, cwd });
  return { ...told, errors: shell.errors.slice(before).join("") };
}

/** Programs that not every machine has. */
const PACKAGES = { jq: "jq", curl: "curl", psql: "postgresql-client", "redis-cli": "redis-tools" };
const canBeTyped = (command: string) =>
  Object.entries(PACKAGES).every(
    ([name, debian]) => !command.includes(`${name} `) || findProgram(name, debian) !== null,
  );

const named = ({ section, at }: Block) => `${section}, block ${at}`;

describe("the runbook", () => {
  it.each(
    blocks
      .filter(({ docker, section }) => !docker && section.startsWith("Sluice"))
      .map((block) => [named(block), block] as const),
  )("can be followed: %s", async (_name, { section, commands }) => {
    const sale = await openSale(sluice, { initial: 9 });
    const { values, afterwards } = (await SITUATIONS[section]?.(sale, commands.join("\n"))) ?? { values: {} };
    for (const command of commands.filter(canBeTyped)) {
      const { code, stdout, stderr, errors } = await type(command, { SALE: sale.id, ITEM: sale.itemId, ...values });
      const said = `${command}\n${stdout}${stderr}${errors}`;
      expect([code, said], said).toEqual([statusOf(command), said]);
      expect(said).not.toContain('"errors"');
    }
    await afterwards?.();
    await leave(sale);
  });

  it("begins with what gives an operator's token", async () => {
    const [block] = blocks;
    expect(block?.commands).toHaveLength(2);
    const script = [
      ...(block?.commands ?? []),
      `TOKEN=$TOKEN; API=${api.url}`,
      'curl -sf -H "authorization: Bearer $TOKEN" $API/metrics',
    ];
    expect(await type(script.join("\n"), { TOKEN: "", API: "" })).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("sluice_build_info"),
    });
    const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };
    for (const name of ["token", "sluice"]) expect(scripts[name]).toBe(`node --import tsx src/cli/${name}.ts`);
  });

  it("names services and programs of Docker that there are, in lines that a shell can read", async () => {
    const { services } = parse(read("docker-compose.yml")) as { services: object };
    const lines = blocks.filter(({ docker }) => docker).flatMap(({ commands }) => commands);
    expect(lines.length).toBeGreaterThan(5);
    expect(await finished("bash", ["-n", "-c", lines.join("\n")])).toMatchObject({ code: 0, stderr: "" });
    for (const line of lines) {
      const [, verb = "", rest = ""] = /^docker compose (\w+) ?(.*)$/.exec(line) ?? [];
      const words = rest.split(" ").filter((word) => /^[a-z]+$/.test(word));
      const meant = verb === "exec" ? words.slice(0, 1) : words;
      expect(Object.keys(services), line).toEqual(expect.arrayContaining(meant));
      const [, program] = /dist\/(\S+)\.js/.exec(rest) ?? [];
      if (program) expect(read(`${program}.ts`)).not.toBe("");
    }
  });
});
