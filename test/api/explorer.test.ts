import { request } from "node:http";
import { decodeJwt } from "jose";
import { beforeAll, describe, expect, it } from "vitest";
import { createTestDatabase } from "../support/database.js";
import { operate } from "../support/operate.js";
import { startTestRedis } from "../support/redis.js";
import { type Api, prepareSluice, reserve, type TestSluice } from "../support/sluice.js";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy.js";

interface Page {
  readonly status: number;
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly text: string;
}

let sluice: TestSluice;
let proxy: TcpProxy;
let api: Api;

beforeAll(async () => {
  const stores = { redis: await startTestRedis(), database: await createTestDatabase() };
  proxy = await startTcpProxy(stores.database.url);
  const databaseUrl = proxy.url(stores.database.url);
  sluice = await prepareSluice({ stores, databaseUrl, env: { SLUICE_DEMO: "true", CORS_ORIGINS: "*" } });
  api = await sluice.startApi();
});

describe("the explorer's page", () => {
  it("where nothing is on sale says how to change that, and keeps tabs of a sale that was just bought out or paused", async () => {
    const sale = await sluice.createSale(api, { initial: [1] });
    expect(preparedIn(await open()).saleId).toBe(sale.id);

    await reserve(api, await sluice.token("buyer", "alice"), sale);
    const boughtOut = await open();
    expect(boughtOut.text).toContain("NewSale");
    expect(preparedIn(boughtOut)).toMatchObject({ saleId: null, keepFor: [null, sale.id] });

    await operate(sluice, api, "pauseSale", sale);
    expect(preparedIn(await open())).toMatchObject({ saleId: null, keepFor: [null, sale.id] });
    await operate(sluice, api, "closeSale", sale);
    expect(preparedIn(await open())).toMatchObject({ saleId: null, keepFor: [null] });
  });

  it("is about the newest sale that is open and has stock, and its first item that has", async () => {
    const good = await sluice.createSale(api, { initial: [0, 3, 4] });
    await sluice.createSale(api, { initial: [0] });
    await sluice.createSale(api, { open: false });
    await sluice.createSale(api, { opensAt: new Date(Date.now() + 60_000) });
    const paused = await sluice.createSale(api);
    await operate(sluice, api, "pauseSale", paused);

    const prepared = preparedIn(await open());
    expect(prepared).toMatchObject({ saleId: good.id, keepFor: [good.id, paused.id] });
    expect(prepared.tabs[0]?.variables).toContain(good.items[1]?.id);
  });

  it("opens while the database is away, and then replaces no tabs", async () => {
    proxy.cut();
    const page = await open();
    proxy.heal();
    expect(page.status).toBe(200);
    expect(preparedIn(page)).toMatchObject({ saleId: null, keepFor: "any" });
    expect(rolesIn(page)).toEqual(["operator"]);
  });

  it("brings a new buyer every time, and may be kept by nobody", async () => {
    const pages = [await open(), await open()];
    const buyers = pages.map((page) => subjectsIn(page).find((subject) => subject.startsWith("buyer explorer-")));
    expect(new Set(buyers).size).toBe(2);
    for (const { status, headers } of pages) {
      expect(status).toBe(200);
      expect(headers).toMatchObject({
        "content-type": "text/html; charset=utf-8",
        "cache-control": "no-store",
        "cross-origin-resource-policy": "same-origin",
        "content-security-policy": expect.stringContaining("connect-src 'self'"),
      });
      expect(headers["content-security-policy"]).toContain("frame-ancestors 'none'");
    }
  });

  it("is the same edition from every process, and another one for another secret", async () => {
    const [first, second] = [preparedIn(await open()), preparedIn(await open(undefined, await sluice.startApi()))];
    expect(second.edition).toBe(first.edition);
    const other = await sluice.startApi({ JWT_SECRET: "another secret, just as long as the other one" });
    expect(preparedIn(await open(undefined, other)).edition).not.toBe(first.edition);
  });
});

describe("an operator's token", () => {
  it("is for a browser on this machine", async () => {
    const { port } = new URL(api.url);
    for (const host of [`localhost:${port}`, `127.0.0.1:${port}`, `[::1]:${port}`]) {
      expect(rolesIn(await open({ host }))).toEqual(["buyer", "operator"]);
    }
  });

  for (const [who, headers] of [
    ["another name of this machine, as in DNS rebinding", { host: "shop.example" }],
    ["a visitor who comes through a proxy on this machine", { "x-forwarded-for": "203.0.113.7" }],
    ["a script of another site, which CORS lets read answers", { origin: "https://shop.example" }],
  ] as const) {
    it(`is not for ${who}`, async () => {
      const page = await open(headers);
      expect(rolesIn(page)).toEqual(["buyer"]);
      expect(page.text).toContain("npm run --silent token -- operator me");
      expect(page.headers["access-control-allow-origin"]).toBeUndefined();
    });
  }

  it("is in no page outside of the demo, and neither is a buyer's", async () => {
    const page = await open(undefined, await sluice.startApi({ SLUICE_DEMO: "" }));
    expect(rolesIn(page)).toEqual([]);
    expect(preparedIn(page)).toMatchObject({ saleId: null, expiresAt: null, keepHeaders: false });
  });
});

/** As a browser asks for it; fetch sets no Host. */
function open(headers: Record<string, string> = {}, { url } = api): Promise<Page> {
  return new Promise((resolve, reject) => {
    const accept = "text/html,application/xhtml+xml,*/*;q=0.8";
    const asking = request(`${url}/graphql`, { headers: { accept, ...headers } }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () => {
        const text = Buffer.concat(chunks).toString();
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text });
      });
    });
    asking.on("error", reject).end();
  });
}

interface Prepared {
  readonly edition: string;
  readonly saleId: string | null;
  readonly keepFor: unknown;
  readonly tabs: readonly { readonly variables: string | null }[];
}

function preparedIn({ text }: Page): Prepared {
  const [, json] = /placeTabs\(localStorage, (\{.*\}), linked\)/.exec(text) ?? [];
  if (json === undefined) throw new Error("the page prepares no tabs");
  return JSON.parse(json);
}

function tokensIn({ text }: Page): string[] {
  return [...new Set(text.match(/eyJ[\w-]+\.[\w-]+\.[\w-]+/g))];
}

function rolesIn(page: Page): unknown[] {
  return tokensIn(page).map((token) => decodeJwt(token).role);
}

function subjectsIn(page: Page): string[] {
  return tokensIn(page).map((token) => `${decodeJwt(token).role} ${decodeJwt(token).sub}`);
}
