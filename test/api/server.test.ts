import { beforeAll, describe, expect, it } from "vitest";
import { spawnNode } from "../support/processes.js";
import { type Api, prepareSluice, saleInput, type TestSluice } from "../support/sluice.js";
import { type Snapshot, snapshotOf } from "../support/snapshot.js";
import { waitFor } from "../support/wait.js";

const JSON_TYPE = { "content-type": "application/json" };
const GRAPHQL_RESPONSE = { ...JSON_TYPE, accept: "application/graphql-response+json" };

let sluice: TestSluice;
let api: Api;
let operator: string;

beforeAll(async () => {
  sluice = await prepareSluice();
  api = await sluice.startApi({ NODE_ENV: "development" });
  operator = await sluice.token("operator", "olga");
  await waitFor(async () => (await get("/ready")).status === 200, { what: "the API to be ready" });
});

describe("health", () => {
  it("/health is 200, and says nothing of dependencies", async () => {
    const response = await get("/health");
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual({ status: "ok" });
  });

  it("/ready is 200 while Redis and the database answer", async () => {
    const response = await get("/ready");
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual({ status: "ok", redis: true, database: true });
  });

  it("/ready is 503 while Redis is gone and 200 again when it is back, /health is 200 all the time", async () => {
    await sluice.redis.kill();
    const unready = await waitFor(
      async () => {
        const response = await get("/ready");
        return response.status === 503 && response;
      },
      { what: "503 of /ready" },
    );
    expect(await unready.json()).toMatchObject({ status: "unavailable", redis: false });
    expect((await get("/health")).status).toBe(200);
    await sluice.redis.restart();
    await waitFor(async () => (await get("/ready")).status === 200, { what: "200 of /ready" });
  });

  it("/ready answers within about a second while Redis is frozen, and recovers when it thaws", async () => {
    sluice.redis.freeze();
    for (let ask = 0; ask < 4; ask += 1) {
      const started = performance.now();
      const response = await get("/ready");
      expect(performance.now() - started).toBeLessThan(1_300);
      expect(response.status).toBe(503);
    }
    sluice.redis.thaw();
    await waitFor(async () => (await get("/ready")).status === 200, { what: "200 of /ready" });
  });

  it("takes no other method than GET and HEAD", async () => {
    for (const path of ["/health", "/ready"]) {
      const response = await fetch(`${api.url}${path}`, { method: "POST" });
      expect([response.status, response.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
      expect((await fetch(`${api.url}${path}`, { method: "HEAD" })).status).toBe(200);
    }
  });
});

describe("a path that isn't there", () => {
  it.each(["/", "/nothing", "/graphql/", "/GRAPHQL", "/health/x", "/__proto__", "/constructor"])(
    "%s is 404 in JSON",
    async (path) => {
      const response = await get(path);
      expect(response.status).toBe(404);
      expect(response.headers.get("content-type")).toMatch(/^application\/json/);
      expect(await response.json()).toHaveProperty("error");
    },
  );
});

describe("/metrics", () => {
  it("is for operators", async () => {
    const read = async (token?: string) =>
      get("/metrics", token === undefined ? {} : { authorization: `Bearer ${token}` });
    expect((await read()).status).toBe(401);
    expect((await read("no token")).status).toBe(401);
    expect((await read(await sluice.token("buyer", "ann"))).status).toBe(403);
    const response = await read(operator);
    expect(response.status).toBe(200);
    expect(await response.text()).toContain("\nsluice_");
  });
});

describe("a request's id", () => {
  it("is the caller's where it can be one, else one of ours, and goes back with every answer", async () => {
    for (const path of ["/graphql?query={serverTime}", "/health", "/nothing"]) {
      const given = await get(path, { "x-request-id": "my-request_1" });
      expect(given.headers.get("x-request-id")).toBe("my-request_1");
      const made = [await get(path), await get(path, { "x-request-id": "a b<script>" })].map((response) =>
        response.headers.get("x-request-id"),
      );
      for (const id of made) expect(id).toMatch(/^[A-Za-z0-9]{12}$/);
      expect(new Set(made).size).toBe(2);
    }
  });
});

describe("GraphiQL", () => {
  it("is a page for browsers that loads nothing from elsewhere", async () => {
    const response = await get("/graphql", { accept: "text/html,application/xhtml+xml,*/*;q=0.8" });
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toMatch(/^text\/html/);
    const html = await response.text();
    expect(html).toContain("Sluice");
    // Outside of the scripts' text, which names addresses in messages.
    const tags = html
      .replace(/(<script\b[^>]*>)[\s\S]*?<\/script>/g, "$1")
      .replace(/(<style\b[^>]*>)[\s\S]*?<\/style>/g, "$1");
    expect(tags.match(/\b(?:src|href|action)\s*=\s*["']?(?:https?:)?\/\/[^"'\s>]*/g)).toBeNull();
    expect(html.match(/@import\s+(?:url\()?["']?(?:https?:)?\/\//g)).toBeNull();
  }, 30_000);

  it("finds the schema by introspection in development", async () => {
    const query = "{ __schema { queryType { name } mutationType { name } subscriptionType { name } types { name } } }";
    const { data, errors } = await api.call<{ __schema: { types: { name: string }[] } }>(null, query);
    expect(errors).toBeUndefined();
    expect(data?.__schema).toMatchObject({ queryType: { name: "Query" }, subscriptionType: { name: "Subscription" } });
    expect(data?.__schema.types.map(({ name }) => name)).toContain("ReservePayload");
  });
});

describe("a mutation has no effect", () => {
  const mutation = "mutation ($input: CreateSaleInput!) { createSale(input: $input) { id } }";
  const variables = JSON.stringify({ input: saleInput() });
  const params = new URLSearchParams({ query: mutation, variables });
  const form = new FormData();
  form.set("operations", JSON.stringify({ query: mutation, variables: { input: saleInput() } }));
  form.set("map", "{}");
  const json = JSON.stringify({ query: mutation, variables: { input: saleInput() } });

  const ways: readonly [string, string, RequestInit, number][] = [
    ["by GET", `?${params}`, {}, 405],
    ["by HEAD", `?${params}`, { method: "HEAD" }, 405],
    ["as a form", "", { method: "POST", body: params }, 415],
    ["as a multipart form", "", { method: "POST", body: form }, 415],
    ["as text", "", { method: "POST", body: json, headers: { "content-type": "text/plain" } }, 415],
    ["as a document", "", { method: "POST", body: mutation, headers: { "content-type": "application/graphql" } }, 415],
    ["without a type", "", { method: "POST", body: new Blob([json]) }, 415],
    ["in a batch", "", { method: "POST", body: `[${json}]`, headers: JSON_TYPE }, 400],
    ["by PUT", "", { method: "PUT", body: json, headers: JSON_TYPE }, 405],
  ];
  it.each(ways)("%s", async (_what, search, init, status) => {
    const before = await snapshot();
    const headers = { ...(init.headers as Record<string, string>), authorization: `Bearer ${operator}` };
    const response = await fetch(`${api.url}/graphql${search}`, { ...init, headers });
    expect(response.status).toBe(status);
    expect(await snapshot()).toEqual(before);
  });

  it("in those ways only: as JSON the same one is done", async () => {
    const before = await snapshot();
    const response = await post(json, JSON_TYPE, operator);
    expect(response.status).toBe(200);
    expect(await snapshot()).not.toEqual(before);
  });
});

describe("GraphQL over HTTP", () => {
  it("answers queries by POST and GET, in the type that was asked for", async () => {
    const query = JSON.stringify({ query: "{ serverTime }" });
    for (const response of [
      await post(query, JSON_TYPE),
      await post(query, { ...JSON_TYPE, accept: "application/json" }),
      await get("/graphql?query={serverTime}", { accept: "application/json" }),
    ]) {
      expect(response.status).toBe(200);
      expect(response.headers.get("content-type")).toMatch(/^application\/(json|graphql-response\+json)/);
      expect(await response.json()).toHaveProperty("data.serverTime");
    }
    const response = await post(query, GRAPHQL_RESPONSE);
    expect(response.headers.get("content-type")).toMatch(/^application\/graphql-response\+json/);
  });

  it.each([
    ["broken JSON", "{", 400],
    ["no object", '"{ serverTime }"', 400],
    ["no query", "{}", 400],
    ["a query that is no text", '{ "query": 7 }', 400],
    ["variables that are none", '{ "query": "{ serverTime }", "variables": "x" }', 400],
    ["a query that can't be parsed", '{ "query": "{" }', 400],
    ["a field that isn't there", '{ "query": "{ nothing }" }', 400],
    ["an operation that isn't there", '{ "query": "{ serverTime }", "operationName": "x" }', 400],
    ["a variable of another type", '{ "query": "query ($id: ID!) { sale(id: $id) { id } }", "variables": {} }', 400],
  ])("refuses %s as BAD_USER_INPUT, and tells nothing of its insides", async (_what, body, status) => {
    const response = await post(body, GRAPHQL_RESPONSE);
    expect(response.status).toBe(status);
    const text = await response.text();
    expect(JSON.parse(text)).toMatchObject({ errors: [{ extensions: { code: "BAD_USER_INPUT" } }] });
    expect(text).not.toMatch(/node_modules|\/src\/|at \w+ \(|stack/);
  });
});

describe("a port that is taken", () => {
  it("ends the process with 1 and one line that says what to do", async () => {
    const port = new URL(api.url).port;
    const late = await spawnNode("src/main.ts", { ...sluice.env, PORT: port });
    expect(await late.exited).toEqual({ code: 1, signal: null });
    expect(late.lines).toHaveLength(1);
    expect(late.lines[0]).toContain(port);
    expect(late.lines[0]).toContain("PORT=");
  });
});

function get(path: string, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${api.url}${path}`, { headers });
}

function post(body: string, headers: Record<string, string>, token?: string): Promise<Response> {
  const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` };
  return fetch(`${api.url}/graphql`, { method: "POST", body, headers: { ...headers, ...authorization } });
}

function snapshot(): Promise<Snapshot> {
  return snapshotOf(sluice.databaseUrl, sluice.redis.url);
}
