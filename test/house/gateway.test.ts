import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { beforeAll, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { MAX_REQUEST_BYTES } from "../../src/http/gateway.js";
import { MAX_WEBHOOK_BYTES } from "../../src/http/payment-webhook.js";
import { reportOf, sendWebhook, WEBHOOK_SECRET } from "../support/payments.js";
import { findProgram } from "../support/programs.js";
import { type Api, prepareSluice, RESERVE, type ReserveAnswer, saleInput, type TestSluice } from "../support/sluice.js";
import { query } from "../support/sql.js";
import { startTcpProxy } from "../support/tcp-proxy.js";
import { atEndOfFile } from "../support/test-file.js";
import { waitFor } from "../support/wait.js";
import { type Gateway, startGateway } from "./gateway.js";
import { ask } from "./npm-start.js";

const nginx = findProgram("nginx", "nginx-light");
const hostOf = (url: string) => new URL(url).host;

describe.skipIf(!nginx)("deploy/nginx.conf", () => {
  let sluice: TestSluice;
  let apis: readonly [Api, Api];
  let gateway: Gateway;

  const gatewayTo = (...urls: string[]) => startGateway(nginx ?? "", urls.map(hostOf));
  const post = (url: string, body: string, headers: Record<string, string> = {}) =>
    fetch(`${url}/graphql`, { method: "POST", body, headers: { "content-type": "application/json", ...headers } });

  beforeAll(async () => {
    sluice = await prepareSluice({ env: { PAYMENT_WEBHOOK_SECRET: WEBHOOK_SECRET } });
    apis = [await sluice.startApi(), await sluice.startApi()];
    gateway = await gatewayTo(apis[0].url, apis[1].url);
  }, 120_000);

  test.each([
    "/metrics",
    "/metrics?x",
    "/admin",
    "/admin/queues",
    "/ready",
    "/ready/",
    "//ready",
    "/health/../metrics",
    "/%6Detrics",
    "/METRICS",
    "/graphql/../admin/x",
  ])("nobody outside gets to %s", async (path) => {
    const { status, head, body } = await requestAsIs(gateway.url, path);
    expect([status, body]).toEqual([404, '{"error":"There is nothing here."}']);
    // An API names each request in its answer: none has seen this one.
    expect(head).not.toMatch(/^x-request-id:/im);
  });

  test("operators get there from the machine itself, with a token", async () => {
    const headers = { authorization: `Bearer ${await sluice.token("operator", "olga")}` };
    const statusOf = async (path: string, headers = {}) =>
      (await fetch(`${gateway.operatorUrl}${path}`, { headers })).status;
    await waitFor(async () => (await statusOf("/ready")) === 200, { what: "200 of /ready" });
    expect([await statusOf("/metrics"), await statusOf("/metrics", headers)]).toEqual([401, 200]);
  });

  test("everybody gets to the API and to its health", async () => {
    expect((await fetch(`${gateway.url}/health`)).status).toBe(200);
    expect(await ask(gateway.url, null, "{ serverTime }")).toMatchObject({ data: { serverTime: expect.any(String) } });
    const page = await fetch(`${gateway.url}/graphql`, { headers: { accept: "text/html" } });
    expect([page.status, await page.text()]).toEqual([200, expect.stringMatching(/graphiql/i)]);
  });

  test("a request that is larger than the API takes goes no further, and is refused in the API's words", async () => {
    const answer = await post(gateway.url, " ".repeat(MAX_REQUEST_BYTES + 1));
    expect([answer.status, answer.headers.get("content-type")]).toEqual([413, "application/json"]);
    expect(await answer.json()).toMatchObject({ errors: [{ extensions: { code: "BAD_USER_INPUT" } }] });
    const largest = JSON.stringify({ query: "{ serverTime }" });
    expect((await post(gateway.url, largest.padEnd(MAX_REQUEST_BYTES))).status).toBe(200);
  });

  test("a payment provider's report gets to an API byte by byte, unless it is large", async () => {
    const body = JSON.stringify(reportOf(`unknown.${randomUUID()}`), null, 2);
    expect(await sendWebhook(gateway, body)).toMatchObject({ status: 200, body: { outcome: "REFUND_DUE" } });
    expect(await sendWebhook(gateway, body, null)).toMatchObject({ status: 401, body: { code: "UNAUTHENTICATED" } });
    const large = await sendWebhook(gateway, body.padEnd(MAX_WEBHOOK_BYTES + 1));
    expect([large.status, large.body]).toEqual([
      413,
      { error: "The report is larger than 16 KB.", code: "BAD_USER_INPUT" },
    ]);
    const largest = await sendWebhook(gateway, body.padEnd(MAX_WEBHOOK_BYTES));
    expect(largest).toMatchObject({ status: 200, body: { outcome: "REFUND_DUE" } });
  });

  test("a request keeps its name from the buyer to the log, which has neither its token nor its contents", async () => {
    const answer = await fetch(`${gateway.url}/graphql?query={serverTime}&secret=s3cret`, {
      headers: { "x-request-id": "my-name", authorization: `Bearer ${await sluice.token("buyer", "alice")}` },
    });
    expect([answer.status, answer.headers.get("x-request-id")]).toEqual([200, "my-name"]);
    const line = await waitFor(() => gateway.log().find(({ requestId }) => requestId === "my-name"), {
      what: "its line",
    });
    expect(line).toEqual({
      time: expect.any(String),
      requestId: "my-name",
      method: "GET",
      path: "/graphql",
      status: "200",
      seconds: expect.stringMatching(/^\d/),
      upstream: expect.stringMatching(/^127/),
      upstreamSeconds: expect.stringMatching(/^\d/),
    });
    const unnamed = await post(gateway.url, '{"query":"{serverTime}"}', { "x-request-id": "a name with spaces" });
    expect(unnamed.headers.get("x-request-id")).toMatch(/^[0-9a-f]{32}$/);
  });

  test("an API hears who asks, under which host, and nothing of the connection to the gateway", async () => {
    const heard: IncomingMessage[] = [];
    const listener = createServer((request, response) => {
      heard.push(request);
      response.end("{}");
    });
    await once(listener.listen(0, "127.0.0.1"), "listening");
    atEndOfFile(() => listener.close());
    const { port } = listener.address() as AddressInfo;
    const { url } = await gatewayTo(`http://127.0.0.1:${port}`);
    await requestAsIs(url, "/", ["x-forwarded-for: 203.0.113.7", "upgrade: h2c"]);
    const asked = heard.find(({ headers }) => headers.host === "shop.example.com:8443");
    expect(asked?.headers).toMatchObject({
      host: "shop.example.com:8443",
      "x-forwarded-for": "203.0.113.7, 127.0.0.1",
      "x-request-id": expect.stringMatching(/^[0-9a-f]{32}$/),
    });
    expect(asked?.headers).not.toHaveProperty("upgrade");
    // One connection does for many requests.
    for (let request = 0; request < 5; request += 1) await requestAsIs(url, "/");
    expect(new Set(heard.map(({ socket }) => socket.remotePort)).size).toBeLessThan(heard.length);
  });

  test("pages of this address may open a WebSocket, others may not", async () => {
    const open = async (origin: string) => {
      const socket = new WebSocket(`${gateway.url.replace("http", "ws")}/graphql`, "graphql-transport-ws", { origin });
      const opened = once(socket, "open").then(() => "open");
      const refused = once(socket, "unexpected-response").then(
        ([, response]) => (response as IncomingMessage).statusCode,
      );
      const outcome = await Promise.race([opened, refused]);
      opened.catch(() => {});
      refused.catch(() => {});
      socket.terminate();
      return outcome;
    };
    expect(await open(gateway.url)).toBe("open");
    expect(await open("https://elsewhere.example.com")).toBe(403);
  });

  test("what an API may have begun is never sent to another one: the buyer is told to ask again", async () => {
    const ways = await Promise.all(apis.map(({ url }) => startTcpProxy(url)));
    const { url } = await gatewayTo(...ways.map((way) => `http://127.0.0.1:${way.port}`));
    for (const way of ways) way.swallowReplies();
    const token = await sluice.token("operator", "olga");
    const title = "Made once";
    const body = JSON.stringify({
      query: "mutation ($input: CreateSaleInput!) { createSale(input: $input) { id } }",
      variables: { input: { ...saleInput(), title } },
    });
    const answering = post(url, body, { authorization: `Bearer ${token}` });
    const made = () => query(sluice.databaseUrl, "SELECT 1 FROM sales WHERE title = $1", [title]);
    await waitFor(async () => (await made()).length > 0 && ways.some((way) => way.swallowedBytes > 0), {
      what: "the sale, and its lost answer",
    });
    for (const way of ways) way.cut({ once: true });
    const answer = await answering;
    expect([answer.status, answer.headers.get("content-type")]).toEqual([503, "application/json"]);
    expect(await answer.json()).toMatchObject({
      errors: [{ extensions: { code: "SERVICE_UNAVAILABLE", retryAfterMs: 2_000 } }],
    });
    expect(await made()).toHaveLength(1);
  });

  // The last one: the APIs end.
  test("an API that is gone costs a buyer one repeat at the most", async () => {
    const sale = await sluice.createSale(apis[0]);
    apis[1].kill("SIGKILL");
    await apis[1].exited;
    const statuses = Array.from({ length: 20 }, async (_, at) => {
      const token = await sluice.token("buyer", `buyer-${at}`);
      const input = { saleId: sale.id, itemId: sale.items[0]?.id, requestId: randomUUID() };
      const reserve = () => ask<ReserveAnswer>(gateway.url, token, RESERVE, { input });
      // Where the gateway had a connection left over, it may have sent before it heard of the end.
      const first = await reserve();
      const answer = first.errors?.[0]?.extensions.code === "SERVICE_UNAVAILABLE" ? await reserve() : first;
      return answer.data?.reserve.status;
    });
    expect(new Set(await Promise.all(statuses))).toEqual(new Set(["QUEUED"]));
    // And where there is none left, it is said as an API would.
    apis[0].kill("SIGKILL");
    await apis[0].exited;
    expect(await ask(gateway.url, null, "{ serverTime }")).toMatchObject({
      errors: [{ extensions: { code: "SERVICE_UNAVAILABLE" } }],
    });
  });
});

/** Without the tidying up that a browser or `fetch` does to a path. */
async function requestAsIs(
  url: string,
  path: string,
  headers: readonly string[] = [],
): Promise<{ status: number; head: string; body: string }> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  const lines = [`GET ${path} HTTP/1.1`, "host: shop.example.com:8443", "connection: close", ...headers];
  // Not `end`: to a gateway a side that is closed is a client that has gone, for whom nothing needs to be asked any more.
  socket.write(`${lines.join("\r\n")}\r\n\r\n`);
  let answer = "";
  for await (const text of socket.setEncoding("utf8")) answer += text;
  const [head = "", body = ""] = answer.split("\r\n\r\n");
  return { status: Number(head.split(" ")[1]), head, body };
}
