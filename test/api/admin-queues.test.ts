import { request } from "node:http";
import { Redis } from "ioredis";
import { beforeAll, describe, expect, it } from "vitest";
import { queuePrefix } from "../../src/redis/keys.js";
import { operate } from "../support/operate.js";
import { type Api, prepareSluice, reserve, saleInput, type TestSale, type TestSluice } from "../support/sluice.js";
import { query } from "../support/sql.js";
import { atEndOfFile } from "../support/test-file.js";
import { waitFor } from "../support/wait.js";

/** What the board tells of a queue, as far as it is looked at here. */
interface BoardQueue {
  readonly name: string;
  readonly displayName: string;
  readonly counts: Record<string, number>;
  readonly jobs: readonly { readonly id: string; readonly data: unknown; readonly failedReason?: string }[];
  readonly readOnlyMode: boolean;
  readonly allowRetries: boolean;
  readonly hasWorkers: boolean | null;
}

let sluice: TestSluice;
let api: Api;
let redis: Redis;
let operator: string;
/** Every credential that was sent: none may be in a log. */
const sent = new Set<string>();

beforeAll(async () => {
  sluice = await prepareSluice();
  api = await sluice.startApi({ LOG_LEVEL: "trace" });
  redis = new Redis(sluice.redis.url);
  redis.on("error", () => {});
  atEndOfFile(() => redis.disconnect());
  operator = await sluice.token("operator", "olga");
});

const bearer = (token: string) => `Bearer ${token}`;
const basic = (password: string | Buffer, name = "x") =>
  `Basic ${Buffer.concat([Buffer.from(`${name}:`), Buffer.from(password)]).toString("base64")}`;

async function get(path: string, authorization = bearer(operator), init: RequestInit = {}): Promise<Response> {
  sent.add(authorization.replace(/^\S* */, ""));
  const headers = { ...(authorization && { authorization }), ...(init.headers as Record<string, string>) };
  return fetch(`${api.url}/admin/queues${path}`, { redirect: "manual", ...init, headers });
}

async function board(search = ""): Promise<BoardQueue[]> {
  const response = await get(`/api/queues${search}`);
  expect([response.status, response.headers.get("cache-control")]).toEqual([200, "no-store"]);
  return ((await response.json()) as { queues: BoardQueue[] }).queues;
}

async function openSale(title: string, options: Parameters<typeof saleInput>[0] = {}): Promise<TestSale> {
  const input = { ...saleInput(options), title };
  const create = "mutation ($input: CreateSaleInput!) { createSale(input: $input) { id items { id } } }";
  const { data } = await api.call<{ createSale: TestSale }>(operator, create, { input });
  const sale = data!.createSale;
  await operate(sluice, api, "openSale", sale);
  return sale;
}

async function queueRequests(sale: TestSale, buyers: readonly string[]): Promise<string[]> {
  const requestIds: string[] = [];
  for (const buyer of buyers) {
    const { data } = await reserve(api, await sluice.token("buyer", buyer), sale);
    expect(data?.reserve.status).toBe("QUEUED");
    requestIds.push(data!.reserve.reservation!.requestId);
  }
  return requestIds;
}

const queueOf = (queues: readonly BoardQueue[], sale: TestSale) => queues.find(({ name }) => name.includes(sale.id));

describe("who may look", () => {
  it("is an operator, by Bearer and by the password of Basic, whatever the name", async () => {
    for (const authorization of [bearer(operator), basic(operator), basic(operator, ""), basic(operator, "olga ü")]) {
      for (const path of ["", "/", "/api/queues", "/static/images/logo.svg"]) {
        expect((await get(path, authorization)).status).toBe(200);
      }
    }
  });

  it("is nobody without a token, or with one that expired: 401, offering both ways", async () => {
    const expired = await sluice.token("operator", "olga", -60);
    for (const authorization of ["", bearer(expired), basic(expired)]) {
      for (const path of ["", "/api/queues", "/static/images/logo.svg", "/nothing"]) {
        const response = await get(path, authorization);
        expect(response.status).toBe(401);
        expect(response.headers.get("www-authenticate")).toMatch(/^Bearer, Basic realm=".+", charset="UTF-8"$/);
        expect(Object.keys((await response.json()) as object)).toEqual(["error"]);
      }
    }
  });

  it("is neither a buyer nor payments: 403", async () => {
    for (const role of ["buyer", "payments"] as const) {
      const token = await sluice.token(role, "ann");
      for (const authorization of [bearer(token), basic(token)]) {
        for (const path of ["", "/api/queues", "/nothing"]) expect((await get(path, authorization)).status).toBe(403);
      }
    }
  });

  it("is not who sends garbage, however long or broken: 401, or 431 where the header is too large", async () => {
    const broken = Buffer.from([0xff, 0xfe, 0x00, 0xc3, 0x28]);
    const garbage = [
      "Bearer",
      "Basic",
      "Basic ====",
      "Basic !!!!",
      "Digest username=x",
      "\xff\xfe",
      bearer("\xe4\xf6\xfc"),
      bearer("a.b.c"),
      bearer("x".repeat(12_000)),
      basic(""),
      basic("no token"),
      basic(broken),
      basic(Buffer.concat([Buffer.from(operator), broken])),
      basic(`${operator}\n`),
      basic("y".repeat(9_000)),
      `Basic ${Buffer.from(operator).toString("base64")}`,
      `Basic ${operator}`,
    ];
    for (const authorization of garbage) expect((await get("/api/queues", authorization)).status).toBe(401);
    expect((await get("/api/queues", bearer("z".repeat(40_000)))).status).toBe(431);
    expect((await get("/api/queues")).status).toBe(200);
  });
});

describe("the board", () => {
  let older: TestSale;
  let newer: TestSale;
  let waiting: string[];
  beforeAll(async () => {
    older = await openSale("Poster drop: 50% / <b>größer</b>", { initial: [50] });
    newer = await openSale("Poster drop: 50% / <b>größer</b>");
    waiting = await queueRequests(older, ["secret-buyer-1", "secret-buyer-2", "secret-buyer-3"]);
    await queueRequests(newer, ["secret-buyer-1"]);
    await waitFor(async () => queueOf(await board(), newer), { what: "the newer sale on the board" });
  });

  it("shows a queue for each sale, the newest first, with title, id and the jobs that wait while no worker runs", async () => {
    const queues = await board();
    expect(queues.map(({ displayName }) => displayName)).toEqual(
      [newer, older].map((sale) => `Poster drop: 50% / <b>größer</b> (${sale.id})`),
    );
    expect(queueOf(queues, older)?.counts).toMatchObject({ waiting: 3, active: 0, failed: 0, delayed: 0 });
    expect(queueOf(queues, newer)?.counts).toMatchObject({ waiting: 1, active: 0 });
    for (const queue of queues) {
      expect(queue).toMatchObject({ readOnlyMode: true, allowRetries: false, hasWorkers: false });
    }
  });

  it("shows of a job the sale and the request, and nothing of the buyer", async () => {
    const { name = "" } = queueOf(await board(), older) ?? {};
    const shown = queueOf(await board(`?activeQueue=${encodeURIComponent(name)}&status=waiting`), older);
    expect(shown?.jobs.map(({ id }) => id).sort()).toEqual([...waiting].sort());
    const [requestId = ""] = waiting;
    const response = await get(`/api/queues/${encodeURIComponent(name)}/${requestId}`);
    const { job, status } = (await response.json()) as { job: BoardQueue["jobs"][0]; status: string };
    expect(status).toBe("waiting");
    expect(job.data).toEqual({ v: 1, saleId: older.id, requestId });
    for (const tail of ["", "/logs", "/flow"]) {
      const text = await (await get(`/api/queues/${encodeURIComponent(name)}/${requestId}${tail}`)).text();
      expect(text).not.toContain("secret-buyer");
    }
  });

  it("takes GET and HEAD alone: what bull-board's page could do to a queue is refused, and does nothing", async () => {
    const { name = "" } = queueOf(await board(), older) ?? {};
    const queue = `/api/queues/${encodeURIComponent(name)}`;
    const tries: [string, string][] = [
      ["PUT", "/api/queues/pause"],
      ["PUT", `${queue}/pause`],
      ["PUT", `${queue}/empty`],
      ["PUT", `${queue}/obliterate`],
      ["PUT", `${queue}/clean/wait`],
      ["PUT", `${queue}/promote`],
      ["PUT", `${queue}/retry/failed`],
      ["PUT", `${queue}/concurrency`],
      ["PUT", `${queue}/${waiting[0]}/clean`],
      ["PUT", `${queue}/${waiting[0]}/retry`],
      ["PATCH", `${queue}/${waiting[0]}/update-data`],
      ["POST", `${queue}/add`],
      ["DELETE", `${queue}/${waiting[0]}`],
      ["OPTIONS", queue],
    ];
    const snapshot = async () => {
      const keys = (await redis.keys(`${queuePrefix(older.id)}:*`)).sort();
      return Promise.all(keys.map(async (key) => [key, await redis.dumpBuffer(key)]));
    };
    const before = await snapshot();
    for (const [method, path] of tries) {
      const body = method === "OPTIONS" ? null : JSON.stringify({ name: "write-order", data: {}, concurrency: 1 });
      const headers = { "content-type": "application/json" };
      const response = await get(path, bearer(operator), { method, headers, body });
      expect([method, path, response.status, response.headers.get("allow")]).toEqual([method, path, 405, "GET, HEAD"]);
    }
    expect(await snapshot()).toEqual(before);
    const head = await get("/api/queues", bearer(operator), { method: "HEAD" });
    expect([head.status, await head.text()]).toEqual([200, ""]);
  });

  it("follows the work: what a worker does, what fails and why, still without the buyer", async () => {
    await query(
      sluice.databaseUrl,
      `ALTER TABLE orders ADD CONSTRAINT not_this_one CHECK ("buyerId" <> 'secret-buyer-2')`,
    );
    const worker = await sluice.startWorker();
    const { name = "" } = queueOf(await board(), older) ?? {};
    const ofOlder = `?activeQueue=${encodeURIComponent(name)}`;
    const failing = await waitFor(
      async () => {
        const queue = queueOf(await board(ofOlder), older);
        return queue?.counts.waiting === 0 && queue.jobs.find(({ failedReason }) => failedReason) ? queue : null;
      },
      { what: "a job that has failed", timeoutMs: 30_000 },
    );
    expect(failing.hasWorkers).toBe(true);
    expect(failing.jobs.map(({ id }) => id)).toEqual([waiting[1]]);
    expect(failing.jobs[0]?.failedReason).toContain("not_this_one");
    expect(JSON.stringify(failing)).not.toContain("secret-buyer");
    worker.kill("SIGKILL");
    await worker.exited;
  });

  it("loses a sale that is closed and has nothing undecided, and keeps one that has", async () => {
    await operate(sluice, api, "closeSale", newer);
    await operate(sluice, api, "closeSale", older);
    await waitFor(async () => !queueOf(await board(), newer), {
      what: "the closed sale to leave the board",
      timeoutMs: 30_000,
    });
    expect(queueOf(await board(), older)).toBeDefined();
  });
});

describe("the page", () => {
  it("is the same with and without a slash, may not be kept, framed, or load from elsewhere", async () => {
    const [bare, slash] = [await get(""), await get("/")];
    const html = await bare.text();
    expect(await slash.text()).toBe(html);
    expect(bare.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(bare.headers.get("cache-control")).toBe("no-store");
    const policy = bare.headers.get("content-security-policy");
    expect(policy).toContain("default-src 'self'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toMatch(/https?:|script-src|connect-src/);
    expect(html).not.toMatch(/(?:href|src)="(?:https?:)?\/\//);
    expect(html).toContain('<base href="/admin/queues/"');
    for (const [, path = ""] of html.matchAll(/(?:href|src)="(static\/[^"]+)"/g)) {
      expect([path, (await get(`/${path}`)).status]).toEqual([path, 200]);
    }
  });

  it("links to where a proxy says that it stands, and believes no nonsense of it", async () => {
    const baseOf = async (prefix: string) => {
      const response = await get("", bearer(operator), { headers: { "x-forwarded-prefix": prefix } });
      return /<base href="([^"]*)"/.exec(await response.text())?.[1];
    };
    expect(await baseOf("/shop/sluice")).toBe("/shop/sluice/admin/queues/");
    for (const prefix of ["//evil.example", "https://evil.example", '/"><script>', "/..", "shop", "/a/"]) {
      expect(await baseOf(prefix)).toBe("/admin/queues/");
    }
  });

  it.each([
    "/nothing",
    "/api",
    "/api/nothing",
    "/static",
    "/static/nothing.js",
    "/static/%2e%2e/index.ejs",
    "/static/..%2findex.ejs",
    "/index.ejs",
    "/api/queues?activeQueue=%25E0%25A4",
    "/api/queues/nothing/nothing",
  ])("%s below it is 404", async (path) => {
    const response = await get(path);
    expect(response.status).toBe(404);
    expect(await response.json()).toHaveProperty("error");
  });

  it.each(["/../../health", "/../metrics", "/api/../../../health", "/static/../../../../package.json"])(
    "%s, as no browser sends it, is 404 too",
    async (path) => {
      const status = await new Promise((answered, failed) => {
        const { hostname, port } = new URL(api.url);
        const headers = { authorization: bearer(operator) };
        request({ hostname, port, path: `/admin/queues${path}`, headers }, (res) => answered(res.resume().statusCode))
          .on("error", failed)
          .end();
      });
      expect(status).toBe(404);
    },
  );
});

describe("while Redis is away", () => {
  it("answers 503 in time where it is frozen, and again when it thaws", async () => {
    await board();
    sluice.redis.freeze();
    for (let ask = 0; ask < 4; ask += 1) {
      const started = performance.now();
      const response = await get("/api/queues");
      expect([response.status, await response.json()]).toEqual([503, { error: expect.stringContaining("Redis") }]);
      // One command's half a second, with room; less than BullMQ's would take to be given up.
      expect(performance.now() - started).toBeLessThan(1_800);
      expect((await get("")).status).toBe(200);
    }
    sluice.redis.thaw();
    await waitFor(async () => (await get("/api/queues")).status === 200, {
      what: "the board again",
      timeoutMs: 20_000,
    });
  });
});

describe("the log", () => {
  it("has none of the credentials that were sent, at its most talkative", () => {
    const lines = api.lines.join("\n");
    expect(lines).toContain('"level":"debug"');
    const credentials = [...sent].filter((credential) => credential.length > 20);
    expect(credentials.length).toBeGreaterThan(10);
    expect(credentials.filter((credential) => lines.includes(credential))).toEqual([]);
  });
});
