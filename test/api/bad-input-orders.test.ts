/** As bad-input.test.ts, for what is done to orders, payments and stock. */
import { randomUUID } from "node:crypto";
import { beforeAll, describe, expect, it } from "vitest";
import { cancelOrder, codeOf, confirmPayment } from "../support/orders.js";
import { type Answer, type Api, prepareSluice, type Role, reserve, type TestSluice } from "../support/sluice.js";
import { type Snapshot, snapshotOf } from "../support/snapshot.js";
import { query } from "../support/sql.js";
import { NO_REASONS, TRICKY } from "../support/tricky.js";

/** What is no visible ASCII, nothing, or too much of it: names that others gave are kept as they are, or not at all. */
const NO_NAMES = [...TRICKY.filter(([, text]) => !/^[\x21-\x7e]{1,255}$/.test(text)), ["256 letters", "x".repeat(256)]];

/** The mutations' arguments: where one is tried, the others are right, but of things that nobody knows. */
const RIGHT = {
  cancelOrder: { orderId: `unknown.${randomUUID()}` },
  cancelOrderByOperator: { orderId: `unknown.${randomUUID()}`, reason: "r" },
  refundOrder: { orderId: `unknown.${randomUUID()}`, reason: "r" },
  completeRefund: { orderId: `unknown.${randomUUID()}`, refundRef: "r", restock: true },
  refundPayment: { paymentRef: "p", refundRef: "r" },
  confirmPayment: { orderId: `unknown.${randomUUID()}`, paymentRef: "p", amountMinor: 1 },
  adjustStock: { saleId: "unknown", itemId: "unknown", delta: 1, reason: "r" },
} as const;
type Mutation = keyof typeof RIGHT;

const TYPES: Readonly<Record<string, string>> = {
  orderId: "ID!",
  saleId: "ID!",
  itemId: "ID!",
  paymentRef: "String!",
  refundRef: "String!",
  reason: "String!",
  amountMinor: "Int!",
  delta: "Int!",
  restock: "Boolean!",
};

let sluice: TestSluice;
let api: Api;
let saleId: string;
let itemId: string;
let tokens: Record<Role, string>;
let before: Snapshot;

beforeAll(async () => {
  sluice = await prepareSluice();
  api = await sluice.startApi();
  const sale = await sluice.createSale(api);
  saleId = sale.id;
  itemId = sale.items[0]?.id ?? "";
  tokens = {
    buyer: await sluice.token("buyer", "ann"),
    operator: await sluice.token("operator", "olga"),
    payments: await sluice.token("payments", "pat"),
  };
  // Accepted, and no order: there is no worker.
  await reserve(api, tokens.buyer, sale);
  before = await snapshotOf(sluice.databaseUrl, sluice.redis.url);
});

describe("the mutations of an order's life refuse, and change nothing", () => {
  const ofOrders = ["cancelOrder", "cancelOrderByOperator", "refundOrder", "completeRefund"] as const;

  it.each(TRICKY)("an orderId with %s, whole or as a part of it", async (_what, text) => {
    const orderIds = [text, `${text}.${randomUUID()}`, `${saleId}.${text}`];
    await expectRefusals(
      "NOT_FOUND",
      orderIds.flatMap((orderId) => ofOrders.map((mutation) => call(mutation, { orderId }))),
    );
  });

  it.each(NO_NAMES)("a payment's or a refund's name, or what money is for, with %s", async (_what, name) => {
    await expectRefusals("BAD_USER_INPUT", [
      call("confirmPayment", { paymentRef: name }),
      call("confirmPayment", { orderId: name }),
      call("completeRefund", { refundRef: name }),
      call("refundPayment", { paymentRef: name }),
      call("refundPayment", { refundRef: name }),
    ]);
  });

  it.each(["cancelOrderByOperator", "refundOrder", "adjustStock"] as const)(
    "%s for no reason that can be told",
    async (mutation) => {
      await expectRefusals(
        "BAD_USER_INPUT",
        [...NO_REASONS, null].map((reason) => call(mutation, { reason })),
      );
    },
  );

  it("numbers and answers that are none", async () => {
    await expectRefusals("BAD_USER_INPUT", [
      ...[-1, 1.5, 2 ** 31, "1", null].map((amountMinor) => call("confirmPayment", { amountMinor })),
      ...[null, "yes", 1].map((restock) => call("completeRefund", { restock })),
    ]);
  });

  it("what nobody knows, and an order that isn't one yet", async () => {
    const { requestId } = (await query(sluice.databaseUrl, 'SELECT "requestId" FROM requests'))[0] ?? {};
    await expectRefusals("NOT_FOUND", [
      ...ofOrders.map((mutation) => call(mutation)),
      ...ofOrders.map((mutation) => call(mutation, { orderId: `${saleId}.${requestId}` })),
      call("refundPayment"),
      call("adjustStock"),
    ]);
  });
});

describe("adjustStock refuses, and changes nothing", () => {
  const adjust = (args: object) => call("adjustStock", { saleId, itemId, ...args });

  it.each([...TRICKY, ["nothing wrong", "unknown"]])("a saleId or an itemId with %s", async (_what, id) => {
    await expectRefusals("NOT_FOUND", [adjust({ saleId: id }), adjust({ itemId: id })]);
  });

  it("a delta that is none, or that the stock can't bear", async () => {
    const none = [0, -2_147_483_648, 2 ** 31, 0.5, "1", null];
    await expectRefusals(
      "BAD_USER_INPUT",
      none.map((delta) => adjust({ delta })),
    );
    for (const delta of [-100, -2_147_483_647, 2_147_483_647]) {
      await expectRefusals("CONFLICT", [adjust({ delta })]);
    }
  });
});

it("names of others that differ in case or in a sign are different names, kept as they came", async () => {
  const refs = ["pay:1", "PAY:1", "pay}1", "0", "00", "';--", "\\x00", "x".repeat(255)];
  for (const paymentRef of refs) {
    const { data } = await confirmPayment(sluice, api, `order-of-${paymentRef}`.slice(0, 128), { paymentRef });
    expect(data?.confirmPayment).toEqual({ outcome: "REFUND_DUE", order: null });
  }
  const rows = await query<{ paymentRef: string }>(sluice.databaseUrl, 'SELECT "paymentRef" FROM payments');
  expect(rows.map((row) => row.paymentRef).sort()).toEqual([...refs].sort());
  const after = await snapshotOf(sluice.databaseUrl, sluice.redis.url);
  expect(after["table payments"], "what is compared sees a change").not.toBe(before["table payments"]);
  expect(codeOf(await cancelOrder(api, tokens.buyer, "0"))).toBe("NOT_FOUND");
});

/** One mutation, by the role that may, with some arguments other than the right ones. */
function call(mutation: Mutation, wrong: object = {}): Promise<Answer<unknown>> {
  const role: Role = mutation === "cancelOrder" ? "buyer" : mutation === "confirmPayment" ? "payments" : "operator";
  const args = { ...RIGHT[mutation], ...wrong };
  const names = Object.keys(args);
  const declared = names.map((name) => `$${name}: ${TYPES[name]}`).join(", ");
  const given = names.map((name) => `${name}: $${name}`).join(", ");
  return api.call(tokens[role], `mutation (${declared}) { ${mutation}(${given}) { __typename } }`, args);
}

async function expectRefusals(code: string, answering: readonly Promise<Answer<unknown>>[]): Promise<void> {
  for (const { data, errors } of await Promise.all(answering)) {
    expect(errors?.map(({ extensions }) => extensions.code)).toEqual([code]);
    expect(errors?.[0]?.message).toMatch(/\w{3}/);
    expect(data ?? null).toBeNull();
  }
  expect(await snapshotOf(sluice.databaseUrl, sluice.redis.url)).toEqual(before);
}
