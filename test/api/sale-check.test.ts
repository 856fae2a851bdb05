import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { beforeAll, describe, expect, it } from "vitest";
import { saleKeys } from "../../src/redis/keys.js";
import { type Answer, type Api, prepareSluice, reserve, type TestSale, type TestSluice } from "../support/sluice.js";
import { snapshotOf } from "../support/snapshot.js";
import { query } from "../support/sql.js";
import { atEndOfFile } from "../support/test-file.js";

interface Check {
  readonly holds: boolean;
  readonly uncompared: string | null;
  readonly findings: readonly { readonly invariant: string; readonly kind: string }[];
  readonly items: readonly { readonly itemId: string; readonly offered: number }[];
  readonly inFlight: Record<string, number>;
}

interface Trace {
  readonly buyerId: string;
  readonly stage: string;
  readonly missing: readonly string[];
  readonly entries: readonly { readonly at: string | null; readonly source: string; readonly details: string }[];
}

const CHECK = `query ($saleId: ID!, $boundSeconds: Int! = 3600) {
  checkSale(saleId: $saleId, boundSeconds: $boundSeconds) {
    saleId holds uncompared findings { invariant kind what count offenders { id expected actual } }
    items { itemId initial ordered offered } inFlight { undecided parked eventsNotApplied pendingInRedis }
  }
}`;
const RELOAD =
  "mutation ($saleId: ID!, $reason: String!) { reloadSale(saleId: $saleId, reason: $reason) { id state } }";
const TRACE = `query ($saleId: ID!, $requestId: UUID!) {
  requestTrace(saleId: $saleId, requestId: $requestId) {
    saleId requestId buyerId stage summary missing entries { at source what details }
  }
}`;

let sluice: TestSluice;
let api: Api;
let redis: Redis;
let operator: string;
let sale: TestSale;
let itemId: string;

beforeAll(async () => {
  sluice = await prepareSluice();
  api = await sluice.startApi();
  redis = new Redis(sluice.redis.url);
  atEndOfFile(() => redis.disconnect());
  operator = await sluice.token("operator", "olga");
  sale = await sluice.createSale(api, { initial: [100] });
  itemId = sale.items[0]?.id ?? "";
});

const check = async (of = sale) =>
  (await api.call<{ checkSale: Check }>(operator, CHECK, { saleId: of.id })).data?.checkSale as Check;
const reload = (of = sale, reason = "seen to") => api.call(operator, RELOAD, { saleId: of.id, reason });
const codes = ({ errors }: Answer<unknown>) => errors?.map(({ extensions }) => extensions.code);
const snapshot = () => snapshotOf(sluice.databaseUrl, sluice.redis.url);

async function reloads(of: TestSale): Promise<unknown[]> {
  return query(
    sluice.databaseUrl,
    `SELECT actor, reason FROM audit_entries WHERE "saleId" = $1 AND action = 'reloadSale' ORDER BY id`,
    [of.id],
  );
}

describe("checkSale", () => {
  it("of a sound sale tells its units and what is under way", async () => {
    await reserve(api, await sluice.token("buyer", "anna"), sale, { quantity: 2 });
    expect(await check()).toEqual({
      saleId: sale.id,
      holds: true,
      uncompared: null,
      findings: [],
      items: [{ itemId, initial: 100, ordered: 0, offered: 98 }],
      inFlight: { undecided: 1, parked: 0, eventsNotApplied: 0, pendingInRedis: 1 },
    });
  });

  it("names what is broken, and repairs nothing; reloadSale does, and is on record", async () => {
    await redis.hset(saleKeys(sale.id).stock, itemId, 150);
    const before = await snapshot();
    const broken = await check();
    expect(broken).toMatchObject({ holds: false, uncompared: null });
    expect(broken.findings).toEqual([
      {
        invariant: "C",
        kind: "offers",
        what: "units of an item that Redis offers",
        count: 1,
        offenders: [{ id: itemId, expected: "98", actual: "150" }],
      },
    ]);
    expect(await snapshot()).toEqual(before);

    expect((await reload()).data).toEqual({ reloadSale: { id: sale.id, state: "OPEN" } });
    expect(await check()).toMatchObject({ holds: true, uncompared: null, items: [{ offered: 98 }] });
    expect(await redis.hget(saleKeys(sale.id).stock, itemId)).toBe("98");
    expect(await reloads(sale)).toEqual([{ actor: "olga", reason: "seen to" }]);
  });

  it("of a sale that Redis has lost says that nothing can be compared", async () => {
    const lost = await sluice.createSale(api, { open: false });
    expect(await check(lost)).toMatchObject({ holds: true, uncompared: "not_loaded" });
  });
});

describe("reloadSale", () => {
  it("while buyers come costs some of them SERVICE_UNAVAILABLE at the most, and the sale comes back by itself", async () => {
    const busy = await sluice.createSale(api, { initial: [1_000] });
    let loading = true;
    const answers: string[] = [];
    const buy = async (lane: number) => {
      for (let n = 0; loading; n += 1) {
        const answer = await reserve(api, await sluice.token("buyer", `b-${lane}-${n}`), busy);
        answers.push(codes(answer)?.[0] ?? answer.data?.reserve.status ?? "nothing");
      }
    };
    const buying = Promise.all([1, 2, 3, 4].map(buy));
    for (let n = 1; n <= 5; n += 1) expect((await reload(busy, `number ${n}`)).errors).toBeUndefined();
    loading = false;
    await buying;

    expect(answers).toContain("QUEUED");
    expect(answers.filter((answer) => !["QUEUED", "PENDING", "SERVICE_UNAVAILABLE"].includes(answer))).toEqual([]);
    expect((await reserve(api, await sluice.token("buyer", "afterwards"), busy)).data?.reserve.status).toBe("QUEUED");
    const queued = answers.filter((answer) => answer === "QUEUED").length + 1;
    const after = await check(busy);
    expect(after).toMatchObject({ holds: true, uncompared: null });
    // Whom it cost an answer may be in line all the same: accepted, and not told.
    expect(after.inFlight.undecided).toBeGreaterThanOrEqual(queued);
    expect(await reloads(busy)).toHaveLength(5);
  });

  it("of a draft, or of one that is long over, is a CONFLICT", async () => {
    const draft = await sluice.createSale(api, { open: false });
    expect(codes(await reload(draft))).toEqual(["CONFLICT"]);
    const over = await sluice.createSale(api);
    await query(
      sluice.databaseUrl,
      `UPDATE sales SET "opensAt" = now() - interval '9 days', "closesAt" = now() - interval '8 days' WHERE id = $1`,
      [over.id],
    );
    expect(codes(await reload(over))).toEqual(["CONFLICT"]);
    for (const refused of [draft, over]) expect(await reloads(refused)).toEqual([]);
  });
});

describe("requestTrace", () => {
  it("tells an operator one request's life, whatever the case of its UUID, and nobody else", async () => {
    const requestId = randomUUID();
    const anna = await sluice.token("buyer", "traced");
    await reserve(api, anna, sale, { requestId });
    const variables = { saleId: sale.id, requestId: requestId.toUpperCase() };
    const { data, errors } = await api.call<{ requestTrace: Trace }>(operator, TRACE, variables);
    expect(errors).toBeUndefined();
    expect(data?.requestTrace).toMatchObject({ saleId: sale.id, requestId, buyerId: "traced", stage: "QUEUED" });
    expect(data?.requestTrace.missing).toEqual([]);
    const [accepted, ...rest] = data?.requestTrace.entries ?? [];
    expect(accepted).toMatchObject({ source: "REDIS", at: expect.stringMatching(/Z$/) });
    expect(JSON.parse(accepted?.details ?? "")).toMatchObject({ itemId, quantity: 1 });
    expect(rest.map(({ source }) => source)).toEqual(expect.arrayContaining(["TABLE", "QUEUE", "REDIS"]));
    expect(codes(await api.call(anna, TRACE, variables))).toEqual(["FORBIDDEN"]);
    expect(codes(await api.call(null, TRACE, variables))).toEqual(["UNAUTHENTICATED"]);
  });

  it("is null for what no store knows, and for what can't be an id", async () => {
    for (const saleId of [sale.id, "elsewhere", "", "a:b", "Xy1\0", "Xy1\ud800", "x".repeat(10_000)]) {
      const { data, errors } = await api.call(operator, TRACE, { saleId, requestId: randomUUID() });
      expect({ data, errors }).toEqual({ data: { requestTrace: null } });
    }
  });
});

it("bad input of every argument changes nothing", async () => {
  const good = { saleId: sale.id, reason: "seen to", requestId: randomUUID() };
  const strangers = ["unknown", "", " ", "a:b", "é", "😀", "Xy1\0", "Xy1\ud800", "x".repeat(10_000)];
  const bad: [string, string, object][] = [
    ...strangers.flatMap((saleId): typeof bad => [
      [CHECK, "NOT_FOUND", { saleId }],
      [RELOAD, "NOT_FOUND", { saleId }],
    ]),
    ...["", " \n", "a\0", "\udc00", "x".repeat(501), undefined].map((reason): (typeof bad)[number] => [
      RELOAD,
      "BAD_USER_INPUT",
      { reason },
    ]),
    ...[0, -1, 604_801, 1.5, 2 ** 40, "60", null].map((boundSeconds): (typeof bad)[number] => [
      CHECK,
      "BAD_USER_INPUT",
      { boundSeconds },
    ]),
    ...["", "x", `${randomUUID()} `, 7, null].map((requestId): (typeof bad)[number] => [
      TRACE,
      "BAD_USER_INPUT",
      { requestId },
    ]),
  ];
  const before = await snapshot();
  for (const [text, code, wrong] of bad) {
    const answer = await api.call(operator, text, { ...good, ...wrong });
    expect({ wrong, codes: codes(answer) }).toEqual({ wrong, codes: [code] });
  }
  expect(await snapshot()).toEqual(before);
});
