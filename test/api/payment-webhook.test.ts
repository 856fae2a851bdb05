import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { request } from "node:http";
import { connect } from "node:net";
import { beforeAll, describe, expect, it } from "vitest";
import { SIGNATURE_HEADER, signWebhook } from "../../src/admission/webhook-signature.js";
import { MINUTE } from "../../src/domain/time.js";
import { MAX_WEBHOOK_BYTES } from "../../src/http/payment-webhook.js";
import { createTestDatabase } from "../support/database.js";
import { PRICE } from "../support/orders.js";
import { answered, buyOne, reportOf, sendWebhook, WEBHOOK_SECRET } from "../support/payments.js";
import { startTestRedis } from "../support/redis.js";
import { type Api, prepareSluice, type TestSale, type TestSluice } from "../support/sluice.js";
import { query } from "../support/sql.js";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy.js";
import { waitFor } from "../support/wait.js";

const OLD_SECRET = "the secret that was before it";

let sluice: TestSluice;
let toDatabase: TcpProxy;
let api: Api;
let sale: TestSale;

beforeAll(async () => {
  const stores = { redis: await startTestRedis(), database: await createTestDatabase() };
  toDatabase = await startTcpProxy(stores.database.url);
  sluice = await prepareSluice({ stores, env: { PAYMENT_WEBHOOK_SECRET: `${WEBHOOK_SECRET}, ${OLD_SECRET}` } });
  [api] = await Promise.all([
    sluice.startApi({ DATABASE_URL: toDatabase.url(stores.database.url) }),
    sluice.startWorker(),
  ]);
  sale = await sluice.createSale(api);
});

const newOrder = () => buyOne(sluice, api, sale, `buyer-${randomUUID()}`);
const recorded = () => query(sluice.databaseUrl, "SELECT 1 FROM payments").then((rows) => rows.length);
const statusOf = async (orderId: string) => {
  const token = await sluice.token("operator", "olga");
  const { data } = await api.call<{ order: { status: string } }>(
    token,
    "query ($id: ID!) { order(id: $id) { status } }",
    { id: orderId },
  );
  return data?.order.status;
};

describe("POST /webhooks/payments", () => {
  it("pays the order, and tells ALREADY_PAID when it comes again, in the same bytes or signed anew", async () => {
    const orderId = await newOrder();
    const report = reportOf(orderId, { provider: { says: "more" }, currency: "EUR" });
    const body = JSON.stringify(report, null, 2);
    const signature = signWebhook(WEBHOOK_SECRET, body, new Date());
    const first = await sendWebhook(api, body, signature);
    expect([first.status, first.body]).toEqual([200, { outcome: "PAID", orderId }]);
    expect(await statusOf(orderId)).toBe("PAID");
    for (const again of [await sendWebhook(api, body, signature), await sendWebhook(api, JSON.stringify(report))]) {
      expect([again.status, again.body]).toEqual([200, { outcome: "ALREADY_PAID", orderId }]);
    }
  });

  it("is the same as confirmPayment", async () => {
    const report = reportOf(await newOrder());
    await sendWebhook(api, JSON.stringify(report));
    const { data } = await api.call(
      await sluice.token("payments", "provider"),
      "mutation ($orderId: ID!, $paymentRef: String!, $amountMinor: Int!) { confirmPayment(orderId: $orderId, paymentRef: $paymentRef, amountMinor: $amountMinor) { outcome } }",
      report,
    );
    expect(data).toEqual({ confirmPayment: { outcome: "ALREADY_PAID" } });
  });

  it("is 200 whatever the money came to, for it is on record", async () => {
    const orderId = await newOrder();
    const outcomes = [];
    for (const report of [
      reportOf(orderId, { amountMinor: PRICE - 1 }),
      reportOf(`${sale.id}.${randomUUID()}`),
      reportOf("not-one-of-ours"),
    ]) {
      const { status, body } = await sendWebhook(api, JSON.stringify(report));
      expect(body.orderId).toBe(report.orderId);
      outcomes.push([status, body.outcome]);
    }
    expect(outcomes).toEqual([
      [200, "AMOUNT_MISMATCH"],
      [200, "REFUND_DUE"],
      [200, "REFUND_DUE"],
    ]);
    expect(await statusOf(orderId)).toBe("PENDING_PAYMENT");
  });

  it("is 409 where the reference stands for something else", async () => {
    const report = reportOf(await newOrder());
    await sendWebhook(api, JSON.stringify(report));
    const { status, body } = await sendWebhook(api, JSON.stringify({ ...report, amountMinor: 1 }));
    expect([status, body]).toEqual([409, { code: "CONFLICT", error: expect.stringMatching(/paymentRef/) }]);
  });

  it("takes either secret while one is being changed", async () => {
    const body = JSON.stringify(reportOf(await newOrder()));
    const old = signWebhook(OLD_SECRET, body, new Date(Date.now() - 4 * MINUTE));
    expect(await sendWebhook(api, body, old)).toMatchObject({ status: 200, body: { outcome: "PAID" } });
    const both = `${signWebhook("a secret we never had", body, new Date())},${old.slice(old.indexOf("v1="))}`;
    expect(await sendWebhook(api, body, both)).toMatchObject({ status: 401 });
  });

  it.each<[string, (body: string) => string | null]>([
    ["is missing", () => null],
    ["is empty", () => ""],
    ["is no signature", () => "Bearer x"],
    ["has no time", (body) => signWebhook(WEBHOOK_SECRET, body, new Date()).replace(/^t=\d+,/, "")],
    ["is of another scheme", (body) => signWebhook(WEBHOOK_SECRET, body, new Date()).replace("v1=", "v2=")],
    ["is by another secret", (body) => signWebhook("a secret we never had", body, new Date())],
    ["is by the secret of the tokens", (body) => signWebhook(sluice.env.JWT_SECRET ?? "", body, new Date())],
    ["is of another amount", (body) => signWebhook(WEBHOOK_SECRET, body.replace("2500", "2501"), new Date())],
    ["is of the same JSON in other bytes", (body) => signWebhook(WEBHOOK_SECRET, ` ${body}`, new Date())],
    ["has another time", (body) => signWebhook(WEBHOOK_SECRET, body, new Date()).replace(/^t=\d/, "t=2")],
  ])("refuses a signature that %s, always in the same words, and records nothing", async (_name, sign) => {
    const before = await recorded();
    const body = JSON.stringify(reportOf(`${sale.id}.${randomUUID()}`));
    const answer = await sendWebhook(api, body, sign(body));
    expect([answer.status, answer.body]).toEqual([
      401,
      { error: "The signature is not valid.", code: "UNAUTHENTICATED" },
    ]);
    expect(await recorded()).toBe(before);
  });

  it.each([-6 * MINUTE, 6 * MINUTE])("refuses a signature whose time is %i ms off, and says so", async (off) => {
    const before = await recorded();
    const body = JSON.stringify(reportOf(`${sale.id}.${randomUUID()}`));
    const answer = await sendWebhook(api, body, signWebhook(WEBHOOK_SECRET, body, new Date(Date.now() + off)));
    expect(answer).toMatchObject({ status: 401, body: { code: "UNAUTHENTICATED", error: /too old or too new/ } });
    expect(await recorded()).toBe(before);
  });

  it.each([
    "",
    "{",
    "[]",
    "null",
    "orderId=x&paymentRef=y&amountMinor=1",
    "{}",
    JSON.stringify(reportOf("x.y", { amountMinor: "2500" })),
    JSON.stringify(reportOf("x.y", { amountMinor: 1.5 })),
    JSON.stringify(reportOf("x.y", { amountMinor: -1 })),
    JSON.stringify(reportOf("x.y", { amountMinor: 2 ** 31 })),
    JSON.stringify(reportOf("x.y", { paymentRef: 7 })),
    JSON.stringify(reportOf("x.y", { paymentRef: "a\0b" })),
    JSON.stringify(reportOf("x.y", { paymentRef: "x".repeat(256) })),
    JSON.stringify(reportOf("")),
    JSON.stringify(reportOf("ö")),
    JSON.stringify(reportOf("\ud800")),
    JSON.stringify({ ...reportOf("x.y"), orderId: undefined }),
  ])("says of %j that it can't be read", async (body) => {
    const before = await recorded();
    const answer = await sendWebhook(api, body);
    expect(answer).toMatchObject({ status: 400, body: { code: "BAD_USER_INPUT", error: expect.any(String) } });
    expect(await recorded()).toBe(before);
  });

  it("is posted to", async () => {
    const answer = await answered(await fetch(`${api.url}/webhooks/payments`));
    expect([answer.status, answer.headers.get("allow")]).toEqual([405, "POST"]);
  });

  it("takes 16 KB, and of more it reads no further", async () => {
    const report = reportOf(`${sale.id}.${randomUUID()}`);
    const size = JSON.stringify({ ...report, more: "" }).length;
    const largest = JSON.stringify({ ...report, more: "x".repeat(MAX_WEBHOOK_BYTES - size) });
    expect(await sendWebhook(api, largest)).toMatchObject({ status: 200, body: { outcome: "REFUND_DUE" } });
    const huge = "x".repeat(8 * 1024 * 1024);
    for (const body of [`${largest} `, "x".repeat(1024 * 1024), huge, huge, huge, huge]) {
      expect(await sendWebhook(api, body, null)).toMatchObject({ status: 413, body: { code: "BAD_USER_INPUT" } });
    }
    expect(await sendWithoutEnd()).toBe(413);
  });

  it("is no worse off for a sender who goes in the middle", async () => {
    const { hostname, port } = new URL(api.url);
    const socket = connect(Number(port), hostname);
    const head = ["POST /webhooks/payments HTTP/1.1", "host: x", "content-length: 100", "x-request-id: half-a-body"];
    socket.write(`${head.join("\r\n")}\r\n\r\n{"order`);
    const inFlight = async () => {
      const response = await fetch(`${api.url}/metrics`, {
        headers: { authorization: `Bearer ${await sluice.token("operator", "olga")}` },
      });
      return Number(/^sluice_http_requests_in_flight (\d+)$/m.exec(await response.text())?.[1]);
    };
    // The one that asks is one itself.
    await waitFor(async () => (await inFlight()) === 2, { what: "the half request" });
    socket.destroy();
    await waitFor(async () => (await inFlight()) === 1, { what: "its end" });
    expect(api.lines.filter((line) => line.includes("half-a-body"))).toEqual([]);
  });

  it("is 503 while the database is away, and the same bytes pay when it is back", async () => {
    const orderId = await newOrder();
    const body = JSON.stringify(reportOf(orderId));
    const signature = signWebhook(WEBHOOK_SECRET, body, new Date());
    toDatabase.cut();
    const away = await sendWebhook(api, body, signature);
    expect(away).toMatchObject({ status: 503, body: { code: "SERVICE_UNAVAILABLE" } });
    expect(Number(away.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
    toDatabase.heal();
    const back = await waitFor(
      async () => {
        const answer = await sendWebhook(api, body, signature);
        return answer.status !== 503 && answer;
      },
      { what: "another answer than 503" },
    );
    expect([back.status, back.body]).toEqual([200, { outcome: "PAID", orderId }]);
  });

  it("leaves neither secrets nor signatures in the log, and a line of what it refused", () => {
    const log = api.lines.join("\n");
    expect(log).toContain("a payment webhook was refused for its signature");
    expect(log).not.toMatch(/v1=|pay_[0-9a-f]/);
    for (const secret of [WEBHOOK_SECRET, OLD_SECRET]) expect(log).not.toContain(secret);
  });

  it("is nowhere without a secret", async () => {
    const { url } = await sluice.startApi({ PAYMENT_WEBHOOK_SECRET: "" });
    const answer = await sendWebhook({ url }, "{}");
    expect([answer.status, answer.body]).toEqual([404, { error: "There is nothing here." }]);
  });
});

/** Sends on and on, with no length said, and resolves with the status when the connection is over. */
async function sendWithoutEnd(): Promise<number | undefined> {
  const sending = request(`${api.url}/webhooks/payments`, {
    method: "POST",
    headers: { [SIGNATURE_HEADER]: "t=1,v1=x" },
  });
  sending.on("error", () => {});
  const send = () => !sending.destroyed && sending.write("x".repeat(1024), () => setImmediate(send));
  send();
  const [response] = await once(sending, "response");
  response.resume();
  await once(sending, "close");
  return response.statusCode;
}
