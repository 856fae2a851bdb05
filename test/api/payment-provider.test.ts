import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { beforeAll, describe, expect, it } from "vitest";
import { ask } from "../house/npm-start.js";
import { type Crowd, gatherCrowd } from "../support/crowd.js";
import { scrapeApi } from "../support/metrics.js";
import { PRICE } from "../support/orders.js";
import { answered, buyOne, WEBHOOK_SECRET } from "../support/payments.js";
import { spawnNode } from "../support/processes.js";
import { type Api, prepareSluice, type TestSale, type TestSluice } from "../support/sluice.js";
import { query } from "../support/sql.js";
import { atEndOfFile } from "../support/test-file.js";
import { waitFor } from "../support/wait.js";

const REQUEST_PAYMENT = "mutation ($orderId: ID!) { requestPayment(orderId: $orderId) { paymentRef url payBy } }";
interface RequestAnswer {
  readonly requestPayment: { readonly paymentRef: string; readonly url: string; readonly payBy: string };
}

let sluice: TestSluice;
let api: Api;
let sale: TestSale;

beforeAll(async () => {
  sluice = await prepareSluice({ env: { PAYMENT_WEBHOOK_SECRET: WEBHOOK_SECRET } });
  [api] = await Promise.all([sluice.startApi({ SLUICE_DEMO: "true" }), sluice.startWorker()]);
  sale = await sluice.createSale(api, { initial: [10_000] });
});

const statusOf = async (orderId: string) => {
  const { data } = await api.call<{ order: { status: string } }>(
    await sluice.token("operator", "olga"),
    "query ($id: ID!) { order(id: $id) { status } }",
    { id: orderId },
  );
  return data?.order.status;
};

describe("the demo's provider", () => {
  const begin = async (buyerId: string) => {
    const orderId = await buyOne(sluice, api, sale, buyerId);
    const { data } = await api.call<RequestAnswer>(await sluice.token("buyer", buyerId), REQUEST_PAYMENT, { orderId });
    return { orderId, request: data?.requestPayment, url: `${api.url}${data?.requestPayment.url}` };
  };
  const press = async (url: string) => answered(await fetch(url, { method: "POST" }));

  it("is paid at the address that it gives, and reports it by the webhook", async () => {
    const { orderId, request, url } = await begin("anna");
    expect(Date.parse(request?.payBy ?? "")).toBeGreaterThan(Date.now());
    const first = await press(url);
    expect([first.status, first.body]).toEqual([200, { outcome: "PAID", orderId }]);
    expect(await statusOf(orderId)).toBe("PAID");
    expect((await press(url)).body).toEqual({ outcome: "ALREADY_PAID", orderId });
    const [row] = await query(sluice.databaseUrl, 'SELECT "amountMinor" FROM payments WHERE "paymentRef" = $1', [
      request?.paymentRef,
    ]);
    expect(row).toEqual({ amountMinor: PRICE });
  });

  it("has a page with a button that works without any script", async () => {
    const { orderId, url } = await begin("ben");
    const page = await fetch(url, { headers: { accept: "text/html" } });
    const html = await page.text();
    expect([page.status, page.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
    expect(page.headers.get("content-security-policy")).toBe(
      "default-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    );
    expect(html).toContain('<form method="post"><button>Pay</button></form>');
    expect(await statusOf(orderId)).toBe("PENDING_PAYMENT");
    const paid = await fetch(url, { method: "POST", headers: { accept: "text/html" }, body: new URLSearchParams() });
    expect([paid.status, await paid.text()]).toEqual([200, expect.stringContaining("Paid. Thank you.")]);
    expect(await statusOf(orderId)).toBe("PAID");
  });

  it("shows what an address says as text", async () => {
    const said = new URLSearchParams({
      orderId: "<script>'\"&",
      paymentRef: "x",
      amountMinor: "19900",
      currency: "JPY",
    });
    const html = await (await fetch(`${api.url}/demo/pay?${said}`)).text();
    expect(html).not.toContain("<script");
    // As many digits as the currency has.
    expect(html).toContain("¥19,900: no money moves here.");
    expect(html).toContain("Order &#60;script&#62;&#39;&#34;&#38;");
  });

  it.each([
    "",
    "?orderId=x",
    "?orderId=x&paymentRef=y&amountMinor=1.5&currency=EUR",
    "?orderId=&paymentRef=y&amountMinor=1&currency=EUR",
    "?orderId=x&paymentRef=y&amountMinor=1&currency=euros",
  ])("knows nothing of /demo/pay%s", async (search) => {
    for (const method of ["GET", "POST"]) {
      expect((await fetch(`${api.url}/demo/pay${search}`, { method })).status).toBe(400);
    }
  });

  it("tells who asks for what can't be paid what the webhook was told", async () => {
    const { orderId, url } = await begin("cleo");
    const answer = await press(url.replace(/amountMinor=\d+/, "amountMinor=1"));
    expect(answer).toMatchObject({ status: 200, body: { outcome: "AMOUNT_MISMATCH", orderId } });
    expect(await press(url)).toMatchObject({ status: 409, body: { code: "CONFLICT" } });
  });
});

describe("without a provider", () => {
  it("requestPayment says so, without a time to come again", async () => {
    const other = await sluice.startApi({ SLUICE_DEMO: "" });
    const { errors } = await other.call(await sluice.token("buyer", "anna"), REQUEST_PAYMENT, { orderId: "any" });
    expect(errors).toEqual([
      expect.objectContaining({
        message: "No payment provider is configured here.",
        extensions: { code: "SERVICE_UNAVAILABLE" },
      }),
    ]);
    expect((await fetch(`${other.url}/demo/pay?orderId=x&paymentRef=y&amountMinor=1`)).status).toBe(404);
    other.kill();
    await other.exited;
  });
});

describe("a provider that takes its time", () => {
  const WAITING = 40;
  const CROWD = 200;

  it("keeps no connection and nobody else waiting, and the buyers who wait get their answers", {
    timeout: 120_000,
  }, async () => {
    const provider = await startSlowProvider();
    const target = await startApiWith(provider.url);
    const crowd = gatherCrowd(target, CROWD);
    atEndOfFile(() => crowd.close());
    // More than a process has connections, so that any that is held is missed.
    const buyers = Array.from({ length: WAITING }, (_, at) => `patient-${at}`);
    const orders = await Promise.all(buyers.map((buyer) => buyOne(sluice, api, sale, buyer)));
    const asking = orders.map(async (orderId, at) => {
      const token = await sluice.token("buyer", buyers[at] ?? "");
      return ask<RequestAnswer>(target.url, token, REQUEST_PAYMENT, { orderId });
    });
    await waitFor(() => provider.waiting.length === WAITING, {
      what: "everybody to wait for the provider",
      timeoutMs: 30_000,
    });
    await waitFor(() => nothingIsHeld(target), { what: "no connection to be held", timeoutMs: 30_000 });

    await Promise.all(Array.from({ length: CROWD }, () => buyMeanwhile(crowd)));
    expect(provider.waiting).toHaveLength(WAITING);
    provider.answerAll();
    for (const { data } of await Promise.all(asking)) expect(data?.requestPayment.paymentRef).toMatch(/^slow_/);
  });

  /** No transaction is open and no connection is taken, by either of two witnesses. */
  async function nothingIsHeld(of: Api): Promise<boolean> {
    const open = await query(
      sluice.databaseUrl,
      `SELECT 1 FROM pg_stat_activity WHERE datname = current_database()
       AND application_name IN ('sluice:api', 'sluice:api:reads') AND (xact_start IS NOT NULL OR state <> 'idle')`,
    );
    const inUse = (await scrapeApi(sluice, of)).value("sluice_pool_connections", { state: "in_use" });
    return open.length === 0 && inUse === 0;
  }
});

/** An API that asks this provider, and waits for it as long as it takes. */
async function startApiWith(providerUrl: string): Promise<Api> {
  const started = await spawnNode("test/api/fixtures/own-provider.ts", {
    ...sluice.env,
    PORT: "0",
    PROVIDER_URL: providerUrl,
    SLUICE_TUNING: JSON.stringify({ deadlines: { paymentMs: 60_000 } }),
  });
  const [, url = ""] = await started.waitForLine(/^\{"url":"([^"]+)"\}$/);
  return { ...started, url } as Api;
}

/** One more buyer reserves, and asks again until his request is durable. */
async function buyMeanwhile(crowd: Crowd): Promise<void> {
  const token = await sluice.token("buyer", `b-${randomUUID()}`);
  const input = { saleId: sale.id, itemId: sale.items[0]?.id ?? "", requestId: randomUUID() };
  await waitFor(
    async () => {
      const { data } = await crowd.reserve(token, input);
      return data?.reserve.status === "QUEUED" || data?.reserve.status === "DECIDED";
    },
    { what: "a reservation beside those who wait", timeoutMs: 40_000 },
  );
}

/** A provider over HTTP that answers when it is told to. */
async function startSlowProvider() {
  const waiting: ServerResponse[] = [];
  const server = createServer((req, res) => {
    req.resume().once("end", () => waiting.push(res));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  atEndOfFile(() => void server.close().closeAllConnections());
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    waiting,
    answerAll() {
      for (const res of waiting.splice(0)) {
        res.end(JSON.stringify({ paymentRef: `slow_${randomUUID()}`, url: "https://pay.example.com" }));
      }
    },
  };
}
