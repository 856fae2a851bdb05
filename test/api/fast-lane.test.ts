import { randomUUID } from "node:crypto";
import { beforeAll, describe, expect, it } from "vitest";
import { scrapeApi } from "../support/metrics.js";
import { operate } from "../support/operate.js";
import { type Api, prepareSluice, type TestSale, type TestSluice } from "../support/sluice.js";
import { query as sql } from "../support/sql.js";

const ORIGIN = "https://shop.example";
/** Executed so often, an operation is compiled. */
const OFTEN = 30;

let sluice: TestSluice;
let api: Api;
let sale: TestSale;
const tokens: Record<string, string> = {};

beforeAll(async () => {
  sluice = await prepareSluice();
  api = await sluice.startApi({ CORS_ORIGINS: ORIGIN });
  sale = await sluice.createSale(api, { initial: [0, 5], maxPerBuyer: 2 });
  for (const role of ["buyer", "operator", "payments"] as const)
    tokens[role] = await sluice.token(role, `some-${role}`);
});

interface Request {
  readonly query: string;
  readonly variables?: unknown;
  readonly operationName?: unknown;
  readonly extensions?: unknown;
}

interface How {
  readonly as?: string;
  readonly headers?: Record<string, string>;
}

async function post(path: string, body: string, { as, headers }: How = {}) {
  const response = await fetch(`${api.url}${path}`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "x-request-id": "mine",
      ...(as && { authorization: `Bearer ${tokens[as]}` }),
      ...headers,
    },
    body,
  });
  const text = await response.text();
  const told = Object.fromEntries([...response.headers].filter(([name]) => name !== "date"));
  // Of a body, what it says: the order of names in it means nothing.
  delete told["content-length"];
  return { status: response.status, headers: told, body: text === "" ? "" : JSON.parse(text) };
}

/** With a query string, even an empty one, a request is no longer plain. */
const throughYoga = (request: Request, how?: How) => post("/graphql?", JSON.stringify(request), how);
const asItComes = (request: Request, how?: How) => post("/graphql", JSON.stringify(request), how);

async function lanes() {
  const figures = await scrapeApi(sluice, api);
  const count = (lane: string) => figures.value("sluice_graphql_requests_total", { lane }) ?? 0;
  return { fast: count("fast"), full: count("full") };
}

/** How many of the requests that `send` makes were answered by the fast lane. */
async function answeredFast(send: () => Promise<unknown>): Promise<number> {
  const before = await lanes();
  await send();
  return (await lanes()).fast - before.fast;
}

const RESERVE = `mutation Reserve($input: ReserveInput!) {
  reserve(input: $input) { status message retryAfterMs reservation { requestId status quantity item { sku } } }
}`;
const SALE = "query ($id: ID!) { sale(id: $id) { id title state maxPerBuyer items { id sku remaining priceMinor } } }";
const ORDERS = `query Orders($id: ID!, $first: Int, $status: OrderStatus) {
  orders(saleId: $id, first: $first, status: $status) { edges { node { id } } pageInfo { hasNextPage } }
}`;

const inputOf = (more: Record<string, unknown> = {}) => ({
  saleId: sale.id,
  itemId: sale.items[0]?.id,
  requestId: "123e4567-e89b-42d3-a456-426614174000",
  quantity: 1,
  ...more,
});

/** Requests whose answer is the same each time, by what is particular about them. */
const PLAIN: Record<string, () => Request & { as?: string }> = {
  "sold out": () => ({ as: "buyer", query: RESERVE, variables: { input: inputOf() } }),
  "a default left out": () => ({ as: "buyer", query: RESERVE, variables: { input: inputOf({ quantity: undefined }) } }),
  "an error of a field": () => ({ as: "buyer", query: RESERVE, variables: { input: inputOf({ quantity: 0 }) } }),
  "more than a buyer may have": () => ({ as: "buyer", query: RESERVE, variables: { input: inputOf({ quantity: 3 }) } }),
  "a sale that isn't there": () => ({ as: "buyer", query: RESERVE, variables: { input: inputOf({ saleId: "none" }) } }),
  "upper case": () => ({
    as: "buyer",
    query: RESERVE,
    variables: { input: inputOf({ requestId: "123E4567-E89B-42D3-A456-426614174000" }) },
  }),
  "a number for an id": () => ({ query: SALE, variables: { id: 7 } }),
  "a name and extensions": () => ({
    as: "buyer",
    query: RESERVE,
    operationName: "Reserve",
    variables: { input: inputOf() },
    extensions: { clientLibrary: { name: "test" } },
  }),
  "nobody where a token is needed": () => ({ query: RESERVE, variables: { input: inputOf() } }),
  "a role that may not": () => ({ as: "payments", query: RESERVE, variables: { input: inputOf() } }),
  "a read by anybody": () => ({ query: SALE, variables: { id: sale.id } }),
  "nothing there": () => ({ query: SALE, variables: { id: "none" } }),
  "no variables": () => ({ query: "{ sales(first: 3) { edges { node { id } } } }" }),
  "variables that are null": () => ({ query: "{ sales { edges { node { id } } } }", variables: null }),
  "a nullable variable left out": () => ({ as: "operator", query: ORDERS, variables: { id: sale.id } }),
  "a nullable variable that is null": () => ({
    as: "operator",
    query: ORDERS,
    variables: { id: sale.id, status: null, first: 2 },
  }),
  "a bad page": () => ({ as: "operator", query: ORDERS, variables: { id: sale.id, first: 5000, status: "PAID" } }),
  "fragments, aliases and directives": () => ({
    query: `query ($id: ID!, $yes: Boolean!) { one: sale(id: $id) { ...F } two: sale(id: $id) { ...F @skip(if: $yes) __typename } }
      fragment F on Sale { id items @include(if: $yes) { again: id id } }`,
    variables: { id: sale.id, yes: true },
  }),
  literals: () => ({
    as: "buyer",
    query: `mutation { a: reserve(input: { saleId: "${sale.id}", itemId: "${sale.items[0]?.id}", requestId: "123e4567-e89b-42d3-a456-426614174000" }) { status }
      b: reserve(input: { saleId: "${sale.id}", itemId: "none", requestId: "123e4567-e89b-42d3-a456-426614174000", quantity: 2 }) { status } }`,
  }),
  introspection: () => ({ query: '{ __schema { queryType { name } } __type(name: "Sale") { kind } }' }),
};

describe("a plain request is answered by the fast lane as Yoga answers it", () => {
  it.each(Object.entries(PLAIN))("%s", async (_name, make) => {
    const { as, ...request } = make();
    const how = as ? { as } : {};
    const expected = await throughYoga(request, how);
    const fast = await answeredFast(async () => {
      for (let time = 0; time < OFTEN; time += 1) expect(await asItComes(request, how)).toEqual(expected);
    });
    expect(fast).toBe(OFTEN);
    // And in compiled form through Yoga.
    expect(await throughYoga(request, how)).toEqual(expected);
  });

  it.each([
    undefined,
    "*/*",
    "application/json",
    "application/json; charset=utf-8",
    "application/graphql-response+json",
    "application/graphql-response+json, application/json;q=0.9",
    "application/json, application/graphql-response+json",
    "application/graphql-response+json;charset=utf-8,application/json;charset=utf-8",
    "text/html, */*;q=0.1",
    "text/event-stream, application/json",
    "APPLICATION/*",
  ])("to a client that accepts %s, with errors and without", async (accept) => {
    for (const quantity of [1, 0]) {
      const how = { as: "buyer", ...(accept && { headers: { accept } }) };
      const request = { query: RESERVE, variables: { input: inputOf({ quantity }) } };
      const expected = await throughYoga(request, how);
      expect(await answeredFast(async () => expect(await asItComes(request, how)).toEqual(expected))).toBe(1);
    }
  });

  it.each([ORIGIN, "https://elsewhere.example"])("to a page of %s", async (origin) => {
    const request = { query: SALE, variables: { id: sale.id } };
    const expected = await throughYoga(request, { headers: { origin } });
    expect(expected.headers["access-control-allow-origin"]).toBe(origin === ORIGIN ? origin : undefined);
    expect(
      await answeredFast(async () => expect(await asItComes(request, { headers: { origin } })).toEqual(expected)),
    ).toBe(1);
  });

  it("once: what it does is done one time", async () => {
    const query = "mutation ($input: CreateSaleInput!) { createSale(input: $input) { id } }";
    const createOne = async (title: string) => {
      const times = { opensAt: "2031-01-01T00:00:00Z", closesAt: "2031-01-02T00:00:00Z" };
      const input = { title, ...times, items: [{ sku: "A", title: "A", initial: 1, priceMinor: 1, currency: "EUR" }] };
      return asItComes({ query, variables: { input } }, { as: "operator" });
    };
    await createOne("first");
    expect(
      await answeredFast(async () => {
        for (let at = 0; at < OFTEN; at += 1) expect((await createOne("again")).body.errors).toBeUndefined();
      }),
    ).toBe(OFTEN);
    expect(await sql(sluice.databaseUrl, `SELECT count(*)::int FROM sales WHERE title = 'again'`)).toEqual([
      { count: OFTEN },
    ]);
  });

  it("with several operations in a document, the one that is named", async () => {
    const query = "query A { sales { edges { node { id } } } } query B($id: ID!) { sale(id: $id) { title } }";
    for (const operationName of ["A", "B"]) {
      const request = { query, operationName, variables: { id: sale.id } };
      const expected = await throughYoga(request);
      expect(await answeredFast(async () => expect(await asItComes(request)).toEqual(expected))).toBe(1);
    }
  });
});

describe("goes to Yoga, and is answered as before,", () => {
  const UNUSUAL: Record<string, () => Request & How> = {
    "an unknown operation": () => ({ query: "query A { __typename }", operationName: "B" }),
    "no such field": () => ({ query: "{ noSuchField }" }),
    "a document that is none": () => ({ query: "query {" }),
    "an empty document": () => ({ query: "" }),
    "a variable that is missing": () => ({ as: "buyer", query: RESERVE, variables: {} }),
    "a variable of a wrong type": () => ({
      as: "buyer",
      query: RESERVE,
      variables: { input: inputOf({ quantity: "1" }) },
    }),
    "a field that the input doesn't have": () => ({
      as: "buyer",
      query: RESERVE,
      variables: { input: inputOf({ more: 1 }) },
    }),
    "a UUID that is none": () => ({ as: "buyer", query: RESERVE, variables: { input: inputOf({ requestId: "7" }) } }),
    "variables that are a list": () => ({ query: SALE, variables: [1] }),
    "variables that are text": () => ({ query: SALE, variables: "{}" }),
    "a parameter that isn't known": () => ({ query: SALE, variables: { id: "x" }, more: 1 }) as Request,
    "a token that is none": () => ({ query: SALE, variables: { id: "x" }, headers: { authorization: "Bearer x" } }),
    "only text is accepted": () => ({ query: SALE, variables: { id: "x" }, headers: { accept: "text/plain" } }),
    "another character set": () => ({
      query: SALE,
      variables: { id: "x" },
      headers: { accept: "application/json; charset=latin1" },
    }),
  };

  it.each(Object.entries(UNUSUAL))("%s", async (_name, make) => {
    const { as, headers, ...request } = make();
    const how = { ...(as && { as }), ...(headers && { headers }) };
    const expected = await throughYoga(request, how);
    const fast = await answeredFast(async () => {
      for (let time = 0; time < OFTEN; time += 1) expect(await asItComes(request, how)).toEqual(expected);
    });
    expect(fast).toBe(0);
  });

  it.each(["", "null", "7", "[]", "{", `[{"query":"{ __typename }"}]`, `{"query":7}`])("the body %s", async (body) => {
    const expected = await post("/graphql?", body);
    expect(expected.status).toBe(400);
    expect(await answeredFast(async () => expect(await post("/graphql", body)).toEqual(expected))).toBe(0);
  });

  it("what a role has not asked before, though another has", async () => {
    const query = `query ($id: ID!) { sale(id: $id) { id title } } # ${randomUUID()}`;
    const request = { query, variables: { id: sale.id } };
    await asItComes(request, { as: "buyer" });
    expect(await answeredFast(() => asItComes(request, { as: "buyer" }))).toBe(1);
    for (const as of ["operator", "payments"]) {
      expect(await answeredFast(() => asItComes(request, { as })), as).toBe(0);
      expect(await answeredFast(() => asItComes(request, { as })), as).toBe(1);
    }
    expect(await answeredFast(() => asItComes(request)), "nobody").toBe(0);
  });

  it("a document that did not pass, however often it comes", async () => {
    const deep = { query: `{ sales { ${"edges { node { ".repeat(900)}id${" } }".repeat(900)} } }` };
    const expected = await throughYoga(deep);
    expect(expected.body.errors[0].extensions.code).toBe("BAD_USER_INPUT");
    expect(
      await answeredFast(async () => {
        for (let time = 0; time < 3; time += 1) expect(await asItComes(deep)).toEqual(expected);
      }),
    ).toBe(0);
  });
});

it("a body that is too large is refused whichever way it comes", async () => {
  const body = JSON.stringify({ query: SALE, variables: { id: "x".repeat(128 * 1024) } });
  for (const path of ["/graphql", "/graphql?"]) {
    const answer = await post(path, body, { headers: { origin: ORIGIN } });
    expect(answer).toMatchObject({ status: 413, body: { errors: [{ extensions: { code: "BAD_USER_INPUT" } }] } });
    expect(answer.headers["access-control-allow-origin"]).toBe(ORIGIN);
  }
});

it("a paused sale is paused for both lanes at once", async () => {
  const request = { query: RESERVE, variables: { input: inputOf() } };
  await asItComes(request, { as: "buyer" });
  await operate(sluice, api, "pauseSale", sale);
  const { body } = await asItComes(request, { as: "buyer" });
  expect(body.data.reserve.status).toBe("PAUSED");
});
