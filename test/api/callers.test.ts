import { createHmac, randomUUID } from "node:crypto";
import { beforeAll, describe, expect, it } from "vitest";
import {
  type Answer,
  type Api,
  prepareSluice,
  RESERVE,
  type Role,
  reserve,
  saleInput,
  type TestSale,
  type TestSluice,
} from "../support/sluice.js";
import { type Snapshot, snapshotOf } from "../support/snapshot.js";
import { query } from "../support/sql.js";

let sluice: TestSluice;
let api: Api;
let sale: TestSale;
let before: Snapshot;
const tokens = new Map<Role | null, string | null>([[null, null]]);

beforeAll(async () => {
  sluice = await prepareSluice();
  api = await sluice.startApi();
  sale = await sluice.createSale(api);
  for (const role of ["buyer", "operator", "payments"] as const) tokens.set(role, await sluice.token(role, "someone"));
  before = await snapshotOf(sluice.databaseUrl, sluice.redis.url);
});

describe("a token that is none", () => {
  const claims = { sub: "eve", role: "operator", iss: "sluice", aud: "sluice", exp: 4_000_000_000 };
  const forged: readonly [string, () => string][] = [
    ["of another secret", () => sign({ alg: "HS256" }, claims, "another secret, longer than 32 characters")],
    ["with alg none", () => `${encode({ alg: "none" })}.${encode(claims)}.`],
    ["with alg None", () => `${encode({ alg: "None" })}.${encode(claims)}.`],
    ["with another algorithm", () => sign({ alg: "HS512" }, claims, secretOf(), "sha512")],
    ["that says no role", () => sign({ alg: "HS256" }, { ...claims, role: undefined })],
    ["of an unknown role", () => sign({ alg: "HS256" }, { ...claims, role: "admin" })],
    ["with two roles", () => sign({ alg: "HS256" }, { ...claims, role: ["operator", "buyer"] })],
    ["without a subject", () => sign({ alg: "HS256" }, { ...claims, sub: undefined })],
    ["with an empty subject", () => sign({ alg: "HS256" }, { ...claims, sub: "" })],
    ["that never expires", () => sign({ alg: "HS256" }, { ...claims, exp: undefined })],
    ["of another issuer", () => sign({ alg: "HS256" }, { ...claims, iss: "other" })],
    ["for another audience", () => sign({ alg: "HS256" }, { ...claims, aud: "other" })],
    ["that isn't valid yet", () => sign({ alg: "HS256" }, { ...claims, nbf: 3_999_999_999 })],
    [
      "that expired an hour ago",
      () => sign({ alg: "HS256" }, { ...claims, exp: Math.floor(Date.now() / 1_000) - 3_600 }),
    ],
    ["with a claim changed", () => tampered(sign({ alg: "HS256" }, { ...claims, role: "buyer" }), claims)],
    ["that is no token", () => "token"],
    ["that is three dots", () => "..."],
  ];
  it.each(forged)("%s is UNAUTHENTICATED, for what everybody may read too", async (_what, token) => {
    for (const operation of ["{ serverTime }", 'mutation { closeSale(saleId: "x") { id } }']) {
      const { data, errors } = await api.call(token(), operation);
      expect(errors?.map(({ extensions }) => extensions.code)).toEqual(["UNAUTHENTICATED"]);
      expect(Object.values(data ?? {}).filter(Boolean)).toEqual([]);
    }
    await expectNothingChanged();
  });

  it("is none for a reason: signed in the same way with the right secret and claims it is taken", async () => {
    const { data } = await api.call(sign({ alg: "HS256" }, claims), "{ serverTime }");
    expect(data?.serverTime).toBeDefined();
  });
});

describe("a role", () => {
  const everyone = [null, "buyer", "operator", "payments"] as const;
  const fields: readonly [
    string,
    readonly (Role | null)[],
    (role: Role | null) => Promise<Answer<Record<string, unknown>>>,
  ][] = [
    ["serverTime", everyone, (role) => as(role, "{ serverTime }")],
    ["sale", everyone, (role) => as(role, "query ($id: ID!) { sale(id: $id) { id } }", { id: sale.id })],
    ["sales", everyone, (role) => as(role, "{ sales { edges { node { id } } } }")],
    [
      "reservation",
      ["buyer", "operator"],
      (role) =>
        as(role, "query ($id: ID!, $r: UUID!) { reservation(saleId: $id, requestId: $r) { status } }", {
          id: sale.id,
          r: randomUUID(),
        }),
    ],
    [
      "myReservation",
      ["buyer", "operator"],
      (role) => as(role, "query ($id: ID!) { myReservation(saleId: $id) { status } }", { id: sale.id }),
    ],
    ["order", ["buyer", "operator"], (role) => as(role, '{ order(id: "x") { id } }')],
    ["myOrders", ["buyer", "operator"], (role) => as(role, "{ myOrders { edges { node { id } } } }")],
    [
      "reserve",
      ["buyer"],
      (role) => as(role, RESERVE, { input: { saleId: "unknown", itemId: "x", requestId: randomUUID() } }),
    ],
    [
      "createSale",
      ["operator"],
      (role) =>
        as(role, "mutation ($input: CreateSaleInput!) { createSale(input: $input) { id } }", {
          input: { ...saleInput(), items: [] },
        }),
    ],
    ["openSale", ["operator"], (role) => as(role, 'mutation { openSale(saleId: "unknown") { id } }')],
    ["pauseSale", ["operator"], (role) => as(role, 'mutation { pauseSale(saleId: "unknown", reason: "r") { id } }')],
    ["resumeSale", ["operator"], (role) => as(role, 'mutation { resumeSale(saleId: "unknown") { id } }')],
    ["closeSale", ["operator"], (role) => as(role, 'mutation { closeSale(saleId: "unknown") { id } }')],
  ];
  for (const [field, allowed, call] of fields) {
    it(`gets to ${field} where it is one of: ${allowed.map((role) => role ?? "nobody").join(", ")}`, async () => {
      for (const role of everyone) {
        const code = (await call(role)).errors?.[0]?.extensions.code;
        const refusal = ["UNAUTHENTICATED", "FORBIDDEN"].includes(code ?? "") ? code : "reached";
        expect(`${role}: ${refusal}`).toBe(
          `${role}: ${allowed.includes(role) ? "reached" : role === null ? "UNAUTHENTICATED" : "FORBIDDEN"}`,
        );
      }
      await expectNothingChanged();
    });
  }

  it("that may not reserve takes nothing, not even with the input of a buyer", async () => {
    for (const [role, code] of [
      [null, "UNAUTHENTICATED"],
      ["operator", "FORBIDDEN"],
      ["payments", "FORBIDDEN"],
    ] as const) {
      const input = { saleId: sale.id, itemId: sale.items[0]?.id, requestId: randomUUID() };
      const { data, errors } = await as(role, RESERVE, { input });
      expect(errors?.[0]?.extensions.code).toBe(code);
      expect(data ?? null).toBeNull();
    }
    await expectNothingChanged();
  });
});

describe("buyers stay different people", () => {
  it("whatever characters their subjects differ by, and each is one person in both stores", async () => {
    const subjects = [
      ...[
        "ann",
        "Ann",
        "ANN",
        "ann ",
        " ann",
        "ann\0",
        "ann\ud800",
        "ann\udbff",
        "änn",
        "a\u0308nn",
        "😀",
        "ann:1",
        "a.b",
        "0",
        ".",
      ],
      ...["x".repeat(64), "x".repeat(65), "x".repeat(10_000), "h_ann", "ann\n", "{ann}"],
    ];
    const crowded = await sluice.createSale(api, { initial: [subjects.length], maxPerBuyer: 1 });
    for (const subject of subjects) {
      const token = await sluice.token("buyer", subject);
      const requestId = randomUUID();
      const first = await reserve(api, token, crowded, { requestId });
      expect(first.data?.reserve.status, JSON.stringify(subject)).toBe("QUEUED");
      const second = await reserve(api, token, crowded);
      expect(second.data?.reserve).toMatchObject({ status: "ALREADY_RESERVED", reservation: { requestId } });
      const own = await api.call(token, "query ($id: ID!) { myReservation(saleId: $id) { requestId } }", {
        id: crowded.id,
      });
      expect(own.data).toEqual({ myReservation: { requestId } });
    }
    const rows = await query<{ buyerId: string }>(
      sluice.databaseUrl,
      `SELECT DISTINCT "buyerId" FROM requests WHERE "saleId" = $1`,
      [crowded.id],
    );
    expect(rows).toHaveLength(subjects.length);
    for (const { buyerId } of rows) expect(buyerId).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
  });

  it("and a request is theirs by its UUID, in whatever case it is written", async () => {
    const own = await sluice.createSale(api, { initial: [2] });
    const requestId = randomUUID();
    const token = await sluice.token("buyer", "cased");
    const upper = await reserve(api, token, own, { requestId: requestId.toUpperCase() });
    expect(upper.data?.reserve).toMatchObject({ status: "QUEUED", reservation: { requestId } });
    const lower = await reserve(api, token, own, { requestId });
    expect(lower.data?.reserve).toMatchObject({ status: "QUEUED", reservation: { requestId } });
  });
});

function as(role: Role | null, operation: string, variables?: Record<string, unknown>) {
  return api.call(tokens.get(role) ?? null, operation, variables);
}

async function expectNothingChanged(): Promise<void> {
  expect(await snapshotOf(sluice.databaseUrl, sluice.redis.url)).toEqual(before);
}

function secretOf(): string {
  return sluice.env.JWT_SECRET ?? "";
}

function encode(part: object): string {
  return Buffer.from(JSON.stringify(part)).toString("base64url");
}

function sign(header: object, claims: object, secret = secretOf(), hash = "sha256"): string {
  const text = `${encode(header)}.${encode(claims)}`;
  return `${text}.${createHmac(hash, secret).update(text).digest("base64url")}`;
}

function tampered(token: string, claims: object): string {
  const [header, , signature] = token.split(".");
  return `${header}.${encode(claims)}.${signature}`;
}
