import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { findFreePort } from "../../src/embedded/ports.js";
import { isRunning, type ProcessIdentity } from "../../src/embedded/process-identity.js";
import { query } from "../support/sql.js";
import { makeTempDir } from "../support/test-file.js";
import { type House, npmStart } from "./npm-start.js";
import { finished } from "./run.js";

/** A run of the demo may have to wait for a killed worker's jobs, on a machine that is busy. */
const PATIENCE_MS = 180_000;

interface Run {
  readonly ok: boolean;
  readonly sale: { readonly id: string; readonly itemId: string; readonly units: number };
  readonly heard: {
    readonly acknowledged: number;
    readonly buyers: Record<string, number>;
    readonly winners: Record<string, number>;
    readonly payments: { readonly by: Record<string, number> };
    readonly secondWave: { readonly asked: number; readonly reserved: number };
    readonly followed: { readonly told: number; readonly untold: number };
  };
  readonly worker: Record<"killed" | "next" | "unwritten" | "unwrittenAtMost" | "decidedSeconds", number> | null;
  readonly verdict: {
    readonly unitsSold: number;
    readonly unitsPaid: number;
    readonly unitsCameBack: number;
    readonly unitsSoldAgain: number;
    readonly orders: Record<"paid" | "unpaid" | "cancelled" | "expired", number>;
    readonly payments: Record<"onRecord" | "reported" | "toGiveBack", number>;
    readonly oversold: number;
    readonly buyersTwice: number;
    readonly withoutEnd: number;
    readonly invariants: Record<string, { readonly holds: boolean }>;
  };
}

/** Short, so that what is left unpaid comes back soon; who is too late on a busy machine is no fault of the demo's. */
const WINDOW = ["--window", "3"];
const ALL_HOLD = Object.fromEntries(["S", "U", "C", "T", "R"].map((name) => [name, { holds: true }]));

describe("npm run demo, beside npm start", () => {
  const dataDir = makeTempDir("demo");
  let env: { SLUICE_DATA_DIR: string; PORT: string };
  let house: House;
  let databaseUrl: string;

  const demo = (...args: string[]) => finished("npm", ["run", "--silent", "demo", "--", ...args], { env });

  /** What became of a sale's units, asked without any code of ours. */
  const sold = (saleId: string) =>
    query<{ units: number; buyers: number; paid: number; unpaid: number; undecided: number }>(
      databaseUrl,
      `SELECT coalesce(sum(quantity) FILTER (WHERE status = 'PAID'), 0)::int AS units,
              count(DISTINCT "buyerId") FILTER (WHERE status = 'PAID')::int AS buyers,
              count(*) FILTER (WHERE status = 'PAID')::int AS paid,
              count(*) FILTER (WHERE status = 'PENDING_PAYMENT')::int AS unpaid,
              (SELECT count(*)::int FROM requests WHERE "saleId" = $1 AND outcome IS NULL) AS undecided
       FROM orders WHERE "saleId" = $1`,
      [saleId],
    );
  const allPaid = (units: number) => [{ units, buyers: units, paid: units, unpaid: 0, undecided: 0 }];

  beforeAll(async () => {
    env = { SLUICE_DATA_DIR: dataDir, PORT: String(await findFreePort()) };
    house = await npmStart(env);
    ({ databaseUrl } = JSON.parse(readFileSync(join(dataDir, "runtime.json"), "utf8")));
  });

  test(
    "storms a sale of its own, says so, and what it says is what the database says",
    async () => {
      const { code, stdout, stderr } = await demo("--buyers", "400", ...WINDOW);
      expect({ code, stderr }, stdout).toEqual({ code: 0, stderr: "" });
      const [, saleId = ""] = /^Selling a fresh sale, (\S+):/m.exec(stdout) ?? [];
      expect(stdout).toMatch(
        /^ {4,}\d+ s {2}accepted \d+ {2}sold out \d+ {2}written \d+ {2}paid \d+ {2}came back \d+$/m,
      );
      expect(stdout).toMatch(/^ {2}units sold +100 of 100$/m);
      expect(stdout).toMatch(/^ {2}units paid for +100$/m);
      expect(stdout).toMatch(/^ {2}units that came back +[1-9]\d*: \d+ cancelled, \d+ expired$/m);
      expect(stdout).toMatch(/^ {2}units sold again +[1-9]\d*: [1-9]\d* by the second wave(, \d+ by others)?$/m);
      expect(stdout).toMatch(/^ {2}payments on record +(\d+) of \1 reported$/m);
      expect(stdout).toMatch(/^ {2}units oversold +0$/m);
      expect(stdout.match(/^ {2}[SUCTR] {2}holds {3}\S/gm)).toHaveLength(5);
      expect(Math.max(...stdout.split("\n").map((line) => line.length))).toBeLessThanOrEqual(80);
      expect(await sold(saleId)).toEqual(allPaid(100));
      // The demo sale of `npm start` is for the visitor.
      expect(await sold(house.saleId ?? "")).toEqual(allPaid(0));
    },
    PATIENCE_MS,
  );

  test(
    "a second time it sells a fresh sale, and says so; --json prints one object, and nothing else",
    async () => {
      const fresh = await demo("--buyers", "60", ...WINDOW);
      expect(fresh.code, fresh.stdout).toBe(0);
      const [, saleId = ""] = /^Selling a fresh sale, (\S+):/m.exec(fresh.stdout) ?? [];
      // Nobody was refused: what came back is on sale.
      const [{ units: paid, ...rest } = { units: 0 }] = await sold(saleId);
      expect(rest).toEqual({ buyers: paid, paid, unpaid: 0, undecided: 0 });
      expect(paid).toBeLessThan(60);
      expect(fresh.stdout).toMatch(new RegExp(`^ {2}units paid for +${paid}$`, "m"));
      expect(fresh.stdout).toMatch(new RegExp(`^ {2}units that came back +${60 - paid}: `, "m"));
      expect(fresh.stdout).toMatch(/^ {2}second wave +nobody came/m);

      const { code, stdout, stderr } = await demo("--json", "--buyers", "400", "--units", "40", ...WINDOW);
      expect({ code, stderr }, stdout).toEqual({ code: 0, stderr: "" });
      const run = JSON.parse(stdout) as Run;
      expect(run).toMatchObject({ ok: true, sale: { units: 40, windowSeconds: 3 }, worker: null });
      expect(run.verdict).toMatchObject({ unitsSold: 40, unitsPaid: 40, oversold: 0, buyersTwice: 0, withoutEnd: 0 });
      expect(run.verdict.invariants).toMatchObject(ALL_HOLD);
      expect(run.heard.buyers).toMatchObject({ unanswered: 0, refused: 0 });
      expect(run.heard.followed.untold).toBe(0);
      expect(run.heard.followed.told).toBeGreaterThan(0);
      expect(await sold(run.sale.id)).toEqual(allPaid(40));
      expectRound(run);
    },
    PATIENCE_MS,
  );

  test(
    "--kill-worker kills the worker while requests are undecided, and proves everything all the same",
    async () => {
      const before = house.processes.worker as ProcessIdentity;
      const { code, stdout, stderr } = await demo(
        "--json",
        "--kill-worker",
        "--buyers",
        "400",
        "--units",
        "40",
        ...WINDOW,
      );
      expect({ code, stderr }, stdout).toEqual({ code: 0, stderr: "" });
      const run = JSON.parse(stdout) as Run;
      expect(run.worker).toMatchObject({ killed: before.pid, next: expect.any(Number) });
      expect(run.worker?.unwrittenAtMost).toBeGreaterThan(0);
      expect(run.worker?.decidedSeconds).toBeGreaterThan(0);
      expect(isRunning(before)).toBe(false);
      const { worker } = JSON.parse(readFileSync(join(dataDir, "processes.json"), "utf8"));
      expect(worker.pid).toBe(run.worker?.next);
      expect(worker.pid).not.toBe(before.pid);
      expect(isRunning(worker)).toBe(true);
      expect(run.verdict.invariants).toMatchObject(ALL_HOLD);
      expect(await sold(run.sale.id)).toEqual(allPaid(40));
      expectRound(run);
    },
    PATIENCE_MS,
  );

  test(
    "where the database loses an order, it says which invariants are broken, and ends with 1",
    async () => {
      await query(
        databaseUrl,
        `CREATE SEQUENCE losses;
         CREATE FUNCTION lose_one() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN
           IF nextval('losses') = 7 THEN
             DELETE FROM orders WHERE "saleId" = NEW."saleId" AND "requestId" = NEW."requestId";
           END IF;
           RETURN NULL;
         END $$;
         CREATE TRIGGER lose_one AFTER INSERT ON orders FOR EACH ROW EXECUTE FUNCTION lose_one()`,
      );
      const { code, stdout, stderr } = await demo("--buyers", "60", "--units", "20", ...WINDOW);
      await query(databaseUrl, "DROP FUNCTION lose_one() CASCADE");
      expect({ code, stderr }, stdout).toEqual({ code: 1, stderr: "" });
      expect(stdout).toMatch(/^ {2}units sold +19 of 20$/m);
      expect([...stdout.matchAll(/^ {2}([SUCTR]) {2}BROKEN/gm)].map(([, name]) => name)).toEqual(["S", "U"]);
      expect(stdout.trimEnd()).toMatch(/^Broken: S U$/m);
    },
    PATIENCE_MS,
  );

  test("a worker that isn't there is no worker to kill, and then nothing is sold", async () => {
    const elsewhere = makeTempDir("demo");
    writeFileSync(join(elsewhere, "runtime.json"), readFileSync(join(dataDir, "runtime.json")));
    // Its number is somebody's by now: of a process that started at another time.
    const stranger = { pid: process.pid, startedAt: "long ago" };
    writeFileSync(join(elsewhere, "processes.json"), JSON.stringify({ worker: stranger }));
    const sales = () => query(databaseUrl, "SELECT id FROM sales");
    const before = await sales();
    const { code, stdout, stderr } = await finished("npm", ["run", "--silent", "demo", "--", "--kill-worker"], {
      env: { ...env, SLUICE_DATA_DIR: elsewhere },
    });
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toMatch(/^--kill-worker needs a worker on this machine[^\n]* Nothing was sold\.\n$/);
    expect(await sales()).toEqual(before);
  });
});

/** What went round: every order has an end, what ended was sold again, and every payment bought or is to be given back. */
function expectRound({ verdict, heard, sale }: Run): void {
  const { orders, payments, unitsCameBack, unitsSoldAgain } = verdict;
  expect(orders).toEqual({ paid: sale.units, unpaid: 0, cancelled: expect.any(Number), expired: expect.any(Number) });
  expect(unitsCameBack).toBe(orders.cancelled + orders.expired);
  expect(unitsSoldAgain).toBe(unitsCameBack);
  expect(unitsCameBack).toBeGreaterThan(0);
  // Each payment, by whichever way, is on record once; those of whom came too late are to be given back.
  expect(payments).toEqual({
    onRecord: payments.reported,
    reported: orders.paid + payments.toGiveBack,
    toGiveBack: expect.any(Number),
  });
  expect(payments.toGiveBack).toBeGreaterThan(0);
  expect(Object.keys(heard.payments.by).sort()).toEqual(["mutation", "webhook"]);
  expect(heard.winners).toMatchObject({ paid: sale.units, unanswered: 0 });
}

describe("npm run demo", () => {
  const demo = (dataDir: string, ...args: string[]) =>
    finished("npm", ["run", "--silent", "demo", "--", ...args], { env: { SLUICE_DATA_DIR: dataDir } });

  test.each([
    [["--buyers", "none"], /^--buyers must be a number from 1 to 50000, not none/],
    [["--buyers", "2000000"], /^--buyers must be a number from 1 to 50000, not 2000000/],
    [["--window", "0"], /^--window must be a number from 1 to 600, not 0/],
    [["--units", "0"], /^--units must be a number from 1 to 50000, not 0/],
    [["--speed"], /^Unknown option '--speed'/],
  ])("with %j it says what is wrong and its usage, in one line", async (args, reason) => {
    const { code, stdout, stderr } = await demo(makeTempDir("demo"), ...args);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toMatch(reason);
    expect(stderr).toMatch(/^[^\n]+\. Usage: npm run demo -- \[--buyers [^\n]+\n$/);
  });

  test("--help tells what it does", async () => {
    const { code, stdout, stderr } = await demo(makeTempDir("demo"), "--help");
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(/--buyers.*--units.*--window.*--kill-worker.*--json/s);
  });

  test("without a running Sluice, or with what a kill -9 left of one, says in one line what to do", async () => {
    const left = makeTempDir("demo");
    const gone = {
      databaseUrl: "postgresql://127.0.0.1:1/x",
      redisUrl: "redis://127.0.0.1:1",
      jwtSecret: "a secret of the tests, longer than 32 characters",
      apiUrl: `http://127.0.0.1:${await findFreePort()}`,
    };
    writeFileSync(join(left, "runtime.json"), JSON.stringify(gone));
    for (const dataDir of [makeTempDir("demo"), left]) {
      const { code, stdout, stderr } = await demo(dataDir);
      expect({ code, stdout, stderr }).toEqual({
        code: 1,
        stdout: "",
        stderr: "No running Sluice was found. In another terminal: npm start\n",
      });
    }
  });
});
