import { mkdirSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { dirname, join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { signToken } from "../../src/admission/sign-token.js";
import { spawnNode } from "../support/processes.js";
import { type Api, prepareSluice, type TestSluice } from "../support/sluice.js";
import { makeTempDir } from "../support/test-file.js";

let sluice: TestSluice;
let api: Api;
let dataDir: string;

beforeAll(async () => {
  dataDir = makeTempDir("data");
  write("page/index.html", "<!doctype html>");
  write("page/main.js", "0;");
  write("page/style.css", "a{}");
  write("page/icon.svg", "<svg/>");
  write("page/notes.txt", "no type that a page has");
  write("page/.hidden.js", "hidden");
  write("page/deep/er.js", "0;");
  write("secret.js", "not for anybody");
  sluice = await prepareSluice({ env: { SLUICE_DATA_DIR: dataDir } });
  api = await sluice.startApi({ SLUICE_DEMO: "true" });
});

function write(name: string, content: string): void {
  const path = join(dataDir, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
}

/** Sends the path as it is: `fetch` would tidy it up first. */
function get(
  path: string,
  options: { method?: string; url?: string } = {},
): Promise<{ status: number; headers: Record<string, unknown>; body: string }> {
  const { method = "GET", url = api.url } = options;
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const sent = request({ hostname, port, path, method }, (response) => {
      let body = "";
      response.setEncoding("utf8").on("data", (text) => {
        body += text;
      });
      response.on("end", () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body }));
    });
    sent.once("error", reject).end();
  });
}

describe("the demo's page", () => {
  it.each([
    ["/", "text/html; charset=utf-8"],
    ["/?sale=x", "text/html; charset=utf-8"],
    ["/page/main.js", "text/javascript; charset=utf-8"],
    ["/page/main.js?v=2", "text/javascript; charset=utf-8"],
    ["/page/style.css", "text/css; charset=utf-8"],
    ["/page/icon.svg", "image/svg+xml"],
  ])("%s is %s, and lets nothing in that isn't its own", async (path, type) => {
    const { status, headers } = await get(path);
    expect([status, headers["content-type"]]).toEqual([200, type]);
    expect(headers["content-security-policy"]).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self';/);
    expect(headers["content-security-policy"]).not.toMatch(/unsafe|\*|https?:/);
    expect(headers).toMatchObject({ "x-content-type-options": "nosniff", "cache-control": "no-cache" });
  });

  it.each([
    "/page/../secret.js",
    "/page/..%2fsecret.js",
    "/page/%2e%2e/secret.js",
    "/page/..\\secret.js",
    "/page//secret.js",
    "/page/./main.js",
    "/page/deep/er.js",
    "/page/.hidden.js",
    "/page/notes.txt",
    "/page/main.js%00.css",
    "/page/MAIN.js",
    "/page/absent.js",
    "/page/",
    "/page",
    "/index.html",
    "/secret.js",
  ])("%s is nowhere", async (path) => {
    const { status, body } = await get(path);
    expect(status).toBe(404);
    expect(JSON.parse(body)).toEqual({ error: "There is nothing here." });
  });

  it("is read, never written", async () => {
    expect(await get("/", { method: "POST" })).toMatchObject({ status: 405, headers: { allow: "GET, HEAD" } });
    expect(await get("/page/main.js", { method: "DELETE" })).toMatchObject({ status: 405 });
    expect(await get("/", { method: "HEAD" })).toMatchObject({ status: 200, body: "" });
  });
});

describe("POST /demo/buyer", () => {
  const become = async (token?: string) => {
    const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const response = await fetch(`${api.url}/demo/buyer`, { method: "POST", headers });
    expect([response.status, response.headers.get("cache-control")]).toEqual([200, "no-store"]);
    return (await response.json()) as { buyerId: string; token: string };
  };
  const mayRead = async (token: string) => {
    const { errors } = await api.call(token, "{ myOrders(first: 1) { edges { cursor } } }");
    return errors === undefined;
  };

  it("makes everybody another buyer, who may buy and nothing else", async () => {
    const [one, other] = [await become(), await become()];
    expect(one.buyerId).not.toBe(other.buyerId);
    expect(await mayRead(one.token)).toBe(true);
    const paused = await api.call(one.token, 'mutation { pauseSale(saleId: "x", reason: "y") { id } }');
    expect(paused.errors?.[0]?.extensions.code).toBe("FORBIDDEN");
  });

  it("gives a buyer with an expired token of ours a new one", async () => {
    const again = await become(await sluice.token("buyer", "visitor-1", -3_600));
    expect(again.buyerId).toBe("visitor-1");
    expect(await mayRead(again.token)).toBe(true);
  });

  it("gives nobody another role or another issuer's buyer", async () => {
    const foreign = { secret: "a secret of somebody else, longer than 32", issuer: "sluice", audience: "sluice" };
    for (const token of [
      await sluice.token("operator", "olga"),
      await sluice.token("payments", "pay"),
      await signToken({ ...foreign, role: "buyer", userId: "ann" }),
      "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbm4iLCJyb2xlIjoiYnV5ZXIifQ.",
      "nonsense",
    ]) {
      const { buyerId, token: given } = await become(token);
      expect(buyerId).toMatch(/^visitor-/);
      const operating = await api.call(given, 'mutation { pauseSale(saleId: "x", reason: "y") { id } }');
      expect(operating.errors?.[0]?.extensions.code).toBe("FORBIDDEN");
    }
  });

  it("is asked by POST", async () => {
    expect(await get("/demo/buyer")).toMatchObject({ status: 405, headers: { allow: "POST" } });
  });
});

describe("without SLUICE_DEMO", () => {
  it("there is no page, and no token for anybody", async () => {
    const { url } = await sluice.startApi();
    for (const path of ["/", "/page/main.js"]) expect(await get(path, { url })).toMatchObject({ status: 404 });
    expect(await get("/demo/buyer", { url, method: "POST" })).toMatchObject({ status: 404 });
  });

  it.each([
    ["NODE_ENV is production", { NODE_ENV: "production" }],
    ["there is no JWT_SECRET", { JWT_SECRET: "", JWT_JWKS_URL: "http://127.0.0.1:9/keys" }],
  ])("it must stay where %s: the API refuses in one plain line", async (_name, more) => {
    const program = await spawnNode("src/main.ts", { ...sluice.env, PORT: "0", SLUICE_DEMO: "true", ...more });
    expect((await program.exited).code).toBe(1);
    expect(program.lines).toEqual([
      "SLUICE_DEMO gives tokens to whoever asks: unset it where NODE_ENV is production, and where there is no JWT_SECRET.",
    ]);
  });
});
