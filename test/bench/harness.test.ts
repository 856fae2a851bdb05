import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import { type AddressInfo, createServer as createNetServer, type Server } from "node:net";
import { jwtVerify } from "jose";
import { describe, expect, it } from "vitest";
import type { Entrant } from "../../bench/entrant.js";
import { judgeGoals } from "../../bench/goals.js";
import { measureInTurns } from "../../bench/in-turns.js";
import { prepareLoad } from "../../bench/load/drive.js";
import { generateLoad } from "../../bench/load/generator.js";
import type { LoadPlan } from "../../bench/load/plan.js";
import { roundOf } from "../../bench/measures/measure.js";
import { readOptions, UsageError } from "../../bench/options.js";
import { renderBars } from "../../bench/report/bars.js";
import { replaceBetweenMarkers } from "../../bench/report/readme.js";
import { renderForReadme, renderReport } from "../../bench/report/table.js";
import { breachesOf, type Results, type Round } from "../../bench/results.js";
import { fillSale } from "../../bench/sluice/fill-sale.js";
import { AUTH } from "../../bench/sluice/operate.js";
import { median, medianRatio } from "../../bench/statistics.js";
import { query } from "../../bench/stores.js";
import { type Bench, type Target, withTrial } from "../../bench/trial.js";
import { createTestDatabase } from "../support/database.js";
import { spawnNode } from "../support/processes.js";
import { startTestRedis } from "../support/redis.js";
import { atEndOfFile, endWithRun } from "../support/test-file.js";

describe("the load generator", () => {
  it("counts every answer by what it says, over connections that are kept open", async () => {
    const server = await serve((_, res, at) => {
      if (at % 4 === 0) return answer(res, 503, { errors: [{ message: "x", extensions: { code: "OVERLOADED" } }] });
      if (at % 4 === 1) return answer(res, 200, { ok: true });
      answer(res, 200, reserved("SOLD_OUT"));
    });
    const result = await prepareLoad(plan(server.url, { until: { requests: 400 } })).run();
    expect(result.answers).toEqual({ SOLD_OUT: 200, "error OVERLOADED": 100, "http 200": 100 });
    expect(result.httpStatuses).toEqual({ 200: 300, 503: 100 });
    expect(result.requests).toBe(400);
    expect(server.requests()).toBe(400);
    expect(result.connectionsOpened).toBe(4);
    expect(server.connections()).toBe(4);
  });

  it("runs in a process of its own", async () => {
    const server = await serve((_, res) => answer(res, 200, reserved("SOLD_OUT")));
    let counting = 0;
    const result = await generateLoad({ endWithRun }, plan(server.url, { until: { requests: 50 } }), () => {
      counting += 1;
    });
    expect(result.answers).toEqual({ SOLD_OUT: 50 });
    expect(counting).toBe(1);
  });

  it("leaves its warm-up out of what it counts", async () => {
    const server = await serve((_, res) => answer(res, 200, reserved("SOLD_OUT")));
    const result = await prepareLoad(plan(server.url, { warmUpSeconds: 0.2, until: { requests: 50 } })).run();
    expect(result.requests).toBe(50);
    expect(server.requests()).toBeGreaterThan(50);
  });

  it("reads answers in pieces, in chunks, and over connections that the server closes", async () => {
    const server = await serve((_, res, at) => {
      const body = JSON.stringify(reserved("QUEUED"));
      res.setHeader("content-type", "application/json");
      if (at % 3 === 0) res.setHeader("connection", "close");
      // Without a length Node sends chunks.
      if (at % 3 !== 1) res.setHeader("content-length", body.length);
      res.write(body.slice(0, 20));
      setTimeout(() => res.end(body.slice(20)), 2);
    });
    const result = await prepareLoad(plan(server.url, { until: { requests: 60 } })).run();
    expect(result.answers).toEqual({ QUEUED: 60 });
    expect(result.connectionsOpened).toBeGreaterThan(4);
  });

  it("counts connections that were lost, and goes on", async () => {
    const server = await serve((req, res, at) => {
      if (at % 10 === 0) req.socket.destroy();
      else answer(res, 200, reserved("SOLD_OUT"));
    });
    const result = await prepareLoad(plan(server.url, { until: { requests: 100 } })).run();
    expect(result.answers).toEqual({ SOLD_OUT: 90, "connection lost": 10 });
  });

  it("gives every stranger a valid token of his own, and every request a new id", async () => {
    const server = await serve((_, res) => answer(res, 200, reserved("SOLD_OUT")));
    const buyers = { prefix: "stranger-", count: 10, behaviour: "strangers" } as const;
    await prepareLoad(plan(server.url, { buyers, until: { requests: 40 } })).run();
    const seen = server.bodies.map((body) => JSON.parse(body).variables.input.requestId as string);
    expect(new Set(seen).size).toBe(40);
    for (const id of seen) expect(id).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    const key = new TextEncoder().encode(AUTH.secret);
    const subjects = await Promise.all(
      server.tokens.map(async (token) => {
        const { payload } = await jwtVerify(token, key, { issuer: AUTH.issuer, audience: AUTH.audience });
        expect(payload.role).toBe("buyer");
        return payload.sub;
      }),
    );
    expect(new Set(subjects).size).toBe(10);
  });

  it("lets a buyer who comes once send the same again until he knows", async () => {
    const tries = new Map<string, number>();
    const server = await serve((_, res, _at, body) => {
      const id = JSON.parse(body).variables.input.requestId as string;
      const before = tries.get(id) ?? 0;
      tries.set(id, before + 1);
      answer(res, 200, reserved(before < 2 ? "BUSY" : "QUEUED"));
    });
    const buyers = { prefix: "buyer-", count: 30, behaviour: "once" } as const;
    const result = await prepareLoad(plan(server.url, { buyers, until: { seconds: 30 } })).run();
    expect(result.answers).toEqual({ BUSY: 60, QUEUED: 30 });
    expect([...tries.values()]).toEqual(Array(30).fill(3));
  });

  it("counts the wait of requests that were due while the server stalled", async () => {
    const stallMs = 600;
    const server = await serve((_, res, at) => {
      const say = () => answer(res, 200, reserved("SOLD_OUT"));
      if (at === 0) setTimeout(say, stallMs);
      else say();
    });
    const open = { kind: "open", connections: 1, perSecond: 100 } as const;
    const result = await prepareLoad(plan(server.url, { pace: open, until: { requests: 80 } })).run();
    expect(result.answers).toEqual({ SOLD_OUT: 80 });
    // Those due in its first third waited for two thirds of it at least: a quarter of all that were sent.
    expect(result.latencyMs.p90).toBeGreaterThan(stallMs * 0.6);
    expect(result.latencyMs.max).toBeGreaterThan(stallMs * 0.98);
  });

  it("says so when nobody is there, or when it is no HTTP", async () => {
    await expect(prepareLoad(plan("http://127.0.0.1:1", { until: { requests: 1 } })).run()).rejects.toThrow(
      "can't be reached",
    );
    const chatty = createNetServer((socket) => void socket.on("error", () => {}).end("hello, who is there?\r\n\r\n"));
    const url = await listen(chatty);
    await expect(prepareLoad(plan(url, { until: { requests: 1 } })).run()).rejects.toThrow("no answer of HTTP/1.1");
  });
});

describe("statistics", () => {
  it("takes the middle", () => {
    expect(median([])).toBeNull();
    expect(median([3])).toBe(3);
    expect(median([9, 1, 5])).toBe(5);
    expect(median([1, 10, 2, 4])).toBe(3);
  });

  it("compares within rounds, and leaves out those in which either has no figure", () => {
    // The machine was slow in round 2: for both.
    expect(medianRatio([100, 10, 120], [50, 5, 60])).toBe(2);
    expect(medianRatio([100, null, 120, 90], [50, 1, 30, null])).toBe(3);
    expect(medianRatio([null], [1])).toBeNull();
    expect(medianRatio([], [])).toBeNull();
  });
});

describe("the report", () => {
  it("tells what was measured, goals met and missed, and how answers were mixed", () => {
    const report = renderReport(FIXTURE);
    expect(report).toContain(
      "| refusals a second, sold out, of what node:http echoes | at least 0.5 times | 0.6 times | yes |",
    );
    expect(report).toContain(
      "of what GraphQL Yoga answers without any work or limit | at least 6 times | 3 times | **no** |",
    );
    expect(report).toContain("| Sluice | 6,000 | ± 50 % |  | p99, ms 12 |");
    expect(report).toContain("| node:http echo | 10,000 | ± 50 % | 0.6 |  |");
    const readme = renderForReadme(FIXTURE);
    expect(readme).toContain("`npm run bench`: medians of 3 rounds");
    expect(readme).toContain("load before the run 0.1.");
    expect(readme).toContain("99 % SOLD_OUT, 1 % error OVERLOADED");
    expect(readme).toContain("Rounds after which every invariant held: 9 of 9.");
  });

  it("names a breach, and shows no figure where there is none", () => {
    const broken = roundOf(9_000, ["S: units of an item, by its orders: 1 wrong"]);
    const measures = [{ measure: "sold-out", contenders: [{ contender: "sluice", rounds: [broken] }] }] as const;
    const report = renderReport({ ...FIXTURE, measures, goals: judgeGoals(measures) });
    expect(report).toContain("- sold-out, sluice, round 1: S: units of an item, by its orders: 1 wrong");
    expect(report).toContain("| Sluice | no figure |");
    expect(report).not.toContain("9,000");
    expect(report).toContain("no figure | not measured |");
    expect(renderBars(measures[0])).toContain("no figure");
  });

  it("draws bars in proportion, with how many times as much Sluice has", () => {
    const svg = renderBars(FIXTURE.measures[0] as Results["measures"][number]);
    const widths = [...svg.matchAll(/<rect [^>]*width="(\d+)"/g)].map(([, width]) => Number(width));
    expect(widths).toHaveLength(3);
    expect((widths[0] as number) / (widths[2] as number)).toBeCloseTo(0.6, 1);
    expect(svg).toContain("10,000 · ×0.6");
  });

  it("replaces what stands between the markers, and only that", () => {
    const text = "before\n<!-- bench:start -->\nold\n<!-- bench:end -->\nafter\n";
    const once = replaceBetweenMarkers(text, "new");
    expect(once).toBe("before\n<!-- bench:start -->\nnew\n<!-- bench:end -->\nafter\n");
    expect(replaceBetweenMarkers(once, "new")).toBe(once);
    expect(() => replaceBetweenMarkers("no markers", "new")).toThrow("README.md needs");
    expect(() => replaceBetweenMarkers("<!-- bench:end --><!-- bench:start -->", "new")).toThrow("README.md needs");
  });
});

describe("the command line", () => {
  it("is read", () => {
    expect(readOptions([])).toMatchObject({ rounds: 5, quick: false, readme: false, command: "npm run bench" });
    expect(readOptions(["--only", "decided,sold-out", "--rounds", "2"])).toMatchObject({
      measures: ["sold-out", "decided"],
      rounds: 2,
      command: "npm run bench -- --only decided,sold-out --rounds 2",
    });
    expect(readOptions(["--quick"])?.rounds).toBe(1);
    expect(readOptions(["--help"])).toBeNull();
  });

  it.each([
    [["--rounds", "0"]],
    [["--only", "sold-out,nothing"]],
    [["--readme", "--quick"]],
    [["--quick", "--rounds", "3"]],
    [["--fast"]],
    [["stray"]],
  ])("is refused in a line: %j", (args) => {
    expect(() => readOptions(args)).toThrow(UsageError);
    expect(() => readOptions(args)).toThrow(/^[^\n]+$/);
  });

  it("ends with 2 where it can't be followed, before anything is started", async () => {
    const bench = await spawnNode("bench/run.ts", {}, ["--only", "everything"]);
    expect(await bench.exited).toEqual({ code: 2, signal: null });
    expect(bench.lines).toHaveLength(1);
    expect(bench.lines[0]).toMatch(/^--only must name some of sold-out, decided, /);
  });
});

describe("a round", () => {
  it("has no figure where the database says that something was broken", async () => {
    const database = await createTestDatabase();
    const redis = await startTestRedis();
    const server = await serve((_, res) => answer(res, 200, reserved("SOLD_OUT")));
    const bench = benchOn(database.url, redis.url, server.url);
    const damage: ((target: Target) => Promise<unknown>)[] = [
      async () => {},
      // A unit was taken from the stock, and nobody has ordered it.
      ({ saleId }) =>
        query(
          database.url,
          'UPDATE sale_items SET available = available - 1, locked = locked + 1 WHERE "saleId" = $1',
          [saleId],
        ),
      async () => {
        throw new Error("the API went away");
      },
    ];
    const { signal } = new AbortController();
    const result = await measureInTurns(
      bench,
      {
        name: "sold-out",
        contenders: ["sluice"],
        round: (_, contender) =>
          withTrial(bench, contender, { workers: false }, async (trial) => {
            const target = await trial.openSale(20);
            await fillSale(database.url, target, 5);
            await damage.shift()?.(target);
            return roundOf(1_000, await trial.findBreaches(target));
          }),
      },
      3,
      signal,
    );
    const rounds = result.contenders[0]?.rounds ?? [];
    expect(rounds.map(({ figure }) => figure)).toEqual([1_000, null, null]);
    expect(breachesOf([result])).toEqual([
      expect.stringMatching(/^sold-out, sluice, round 2: S: units of an item, by its orders: 1 wrong/),
      expect.stringMatching(/^sold-out, sluice, round 2: S: units of an item, by its movements: 1 wrong/),
      "sold-out, sluice, round 3: the API went away",
    ]);
  });
});

function plan(url: string, more: Partial<LoadPlan> & Pick<LoadPlan, "until">): LoadPlan {
  return {
    url,
    pace: { kind: "closed", connections: 4 },
    buyers: { prefix: "stranger-", count: 20, behaviour: "strangers" },
    target: { saleId: "sale", itemId: "item" },
    auth: AUTH,
    ...more,
  };
}

function reserved(status: string) {
  return { data: { reserve: { status, reservation: null, message: "as said" } } };
}

function answer(res: ServerResponse, status: number, body: object): void {
  const text = JSON.stringify(body);
  res.writeHead(status, { "content-type": "application/json", "content-length": text.length }).end(text);
}

type Handler = (req: IncomingMessage, res: ServerResponse, at: number, body: string) => void;

/** A server that hands over whole requests, numbered, and remembers what it was sent. */
async function serve(handle: Handler) {
  const bodies: string[] = [];
  const tokens: string[] = [];
  let connections = 0;
  const onRequest: RequestListener = async (req, res) => {
    const chunks: Buffer[] = [];
    for await (const chunk of req) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks).toString("utf8");
    tokens.push((req.headers.authorization ?? "").replace("Bearer ", ""));
    handle(req, res, bodies.push(body) - 1, body);
  };
  const server = createServer((req, res) => void onRequest(req, res));
  server.on("connection", () => {
    connections += 1;
  });
  const url = await listen(server);
  return { url, bodies, tokens, requests: () => bodies.length, connections: () => connections };
}

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  atEndOfFile(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A bench with one contender, which is a server of this file, on stores of this file. */
function benchOn(databaseUrl: string, redisUrl: string, url: string): Bench {
  const entrant: Entrant = {
    promises: "S U",
    start: async () => ({
      url,
      apiPids: () => [],
      workerPids: () => [],
      died: new Promise<never>(() => {}),
      startWorkers: async () => {},
      openSale: async () => {},
      stop: async () => {},
    }),
  };
  const fresh = async () => ({ databaseUrl, redisUrl, postgresPid: 0, redisPid: 0, close: async () => {} });
  return {
    stores: { versions: () => ({ postgres: "", redis: "" }), fresh, stop: async () => {} },
    runDir: { path: "", wardenPid: undefined, logPath: () => "", endWithRun, clearUp: async () => {} },
    apis: 1,
    workers: 1,
    quick: true,
    entrants: { sluice: entrant },
    say: () => {},
  };
}

const rounds = (
  figures: readonly number[],
  details: Record<string, number> = {},
  answers: Record<string, number> = {},
) => figures.map((figure): Round => roundOf(figure, [], details, answers));

const MEASURES_OF_FIXTURE: Results["measures"] = [
  {
    measure: "sold-out",
    contenders: [
      {
        contender: "sluice",
        rounds: rounds([6_000, 3_000, 6_600], { "p99, ms": 12 }, { SOLD_OUT: 99, "error OVERLOADED": 1 }),
      },
      { contender: "yoga-noop-lean", rounds: rounds([2_000, 1_000, 2_200]) },
      { contender: "echo", rounds: rounds([10_000, 5_000, 11_000]) },
    ],
  },
];

const FIXTURE: Results = {
  at: "2026-12-01T10:20:30.000Z",
  command: "npm run bench",
  full: true,
  rounds: 3,
  machine: {
    processor: "A processor",
    cores: 2,
    memoryGb: 24,
    busyBefore: 0.1,
    system: "linux",
    node: "20.20.2",
    redis: "7.0.15",
    postgres: "18.4",
  },
  measures: MEASURES_OF_FIXTURE,
  goals: judgeGoals(MEASURES_OF_FIXTURE),
};
