import { randomUUID } from "node:crypto";
import { beforeAll, describe, expect, it } from "vitest";
import { operate } from "../support/operate.js";
import { cancelOrder, confirmPayment, placeOrder } from "../support/orders.js";
import { forgeCursor, type List, listOf, pageOf, readPages, refusalOf } from "../support/pages.js";
import { type Api, prepareSluice, type TestSale, type TestSluice } from "../support/sluice.js";
import { query } from "../support/sql.js";

let sluice: TestSluice;
let api: Api;
let operator: string;
let sale: TestSale;
/** Order ids of the sale, the newest first: two of them paid, one cancelled. */
let orders: string[];
const [PAID, CANCELLED] = [[1, 4], 6];

beforeAll(async () => {
  sluice = await prepareSluice();
  [api] = await Promise.all([sluice.startApi(), sluice.startWorker()]);
  operator = await sluice.token("operator", "olga");
  sale = await sluice.createSale(api);
  const other = await sluice.createSale(api);
  const placed = [];
  for (let at = 0; at < 7; at += 1) placed.push(await placeOrder(sluice, api, sale, `buyer-${at}`));
  await placeOrder(sluice, api, other, "buyer-0");
  // Three of one moment, as a batch writes them.
  const tied = placed.slice(2, 5).map(({ requestId }) => requestId);
  await query(
    sluice.databaseUrl,
    `UPDATE orders SET "createdAt" = (SELECT max("createdAt") FROM orders WHERE "requestId" = ANY($1)) WHERE "requestId" = ANY($1)`,
    [tied],
  );
  const newestFirst = [...placed].reverse();
  const ties = newestFirst.slice(2, 5).sort((one, two) => (one.requestId < two.requestId ? 1 : -1));
  newestFirst.splice(2, 3, ...ties);
  orders = newestFirst.map(({ id }) => id);
  for (const at of PAID) await confirmPayment(sluice, api, orders[at] ?? "");
  const { token, id } = newestFirst[CANCELLED] as (typeof placed)[number];
  await cancelOrder(api, token, id);
});

const ordersOf = (saleId: string, status?: string): List => ({
  api,
  token: operator,
  field: "orders",
  variables: { saleId, status },
  query: `query ($saleId: ID!, $status: OrderStatus, $first: Int!, $after: String) {
    orders(saleId: $saleId, status: $status, first: $first, after: $after) { ${listOf("id")} }
  }`,
});

const refundsDue = (): List => ({
  api,
  token: operator,
  field: "refundsDue",
  query: `query ($first: Int!, $after: String) { refundsDue(first: $first, after: $after) { ${listOf("paymentRef")} } }`,
});

const auditLog = (saleId: string | null): List => ({
  api,
  token: operator,
  field: "auditLog",
  variables: { saleId },
  query: `query ($saleId: ID, $first: Int!, $after: String) {
    auditLog(saleId: $saleId, first: $first, after: $after) { ${listOf("id")} }
  }`,
});

describe("orders", () => {
  it.each([1, 2, 3, 7, 100])(
    "of a sale come %i a page, the newest first, those of one moment once each",
    async (first) => {
      expect(await readPages(ordersOf(sale.id), first)).toEqual(orders);
    },
  );

  it("come by status, a page at a time too", async () => {
    expect(await readPages(ordersOf(sale.id, "PAID"), 1)).toEqual(PAID.map((at) => orders[at]));
    expect(await readPages(ordersOf(sale.id, "CANCELLED"), 1)).toEqual([orders[CANCELLED]]);
    expect(await readPages(ordersOf(sale.id, "REFUNDED"), 1)).toEqual([]);
  });

  it("of no sale are none", async () => {
    for (const id of ["unknown", "", "a:b", "😀"]) expect(await readPages(ordersOf(id), 10), id).toEqual([]);
  });
});

describe("refundsDue", () => {
  it.each([1, 2, 4])("comes %i a page, due the longest first, those of one moment once each", async (first) => {
    const refs = ["c", "A", "b", "a", "B", "_"].map((name) => `${first}${name}`);
    for (const paymentRef of refs) await confirmPayment(sluice, api, "lost", { paymentRef });
    const [early, ...late] = refs;
    await query(
      sluice.databaseUrl,
      `UPDATE payments SET "refundDueAt" = now() + interval '1 second' WHERE "paymentRef" = ANY($1)`,
      [late],
    );
    const found = (await readPages(refundsDue(), first)).filter((ref) => refs.includes(ref));
    expect(found[0]).toBe(early);
    expect([...found].sort()).toEqual([...refs].sort());
  });

  it("goes on where it was when what came before was given back meanwhile", async () => {
    const all = await readPages(refundsDue(), 100);
    const { edges, pageInfo } = await pageOf(refundsDue(), { first: 3 });
    const text = "mutation ($p: String!, $r: String!) { refundPayment(paymentRef: $p, refundRef: $r) { refundedAt } }";
    for (const { node } of edges) {
      expect((await api.call(operator, text, { p: node.id, r: `back_${node.id}` })).errors).toBeUndefined();
    }
    const rest = await pageOf(refundsDue(), { first: 100, after: pageInfo.endCursor });
    expect(rest.edges.map(({ node }) => node.id)).toEqual(all.slice(3));
    expect(await readPages(refundsDue(), 2)).toEqual(all.slice(3));
  });
});

describe("auditLog", () => {
  it("tells of one sale what was done to it, by whom and why, the latest first", async () => {
    const paused = await sluice.createSale(api);
    await operate(sluice, api, "pauseSale", paused);
    const text = `query ($id: ID!) { auditLog(saleId: $id) { edges { node { saleId actor action reason details } } } }`;
    const { data } = await api.call<{ auditLog: { edges: { node: object }[] } }>(operator, text, { id: paused.id });
    const entry = { saleId: paused.id, actor: "olga", reason: null, details: "{}" };
    expect(data?.auditLog.edges.map(({ node }) => node)).toEqual([
      { ...entry, action: "pauseSale", reason: "a test" },
      { ...entry, action: "openSale" },
      { ...entry, action: "createSale" },
    ]);
  });

  it.each([1, 3, 100])("comes %i a page, of one sale or of all, the lines of one moment once each", async (first) => {
    await query(
      sluice.databaseUrl,
      `UPDATE audit_entries SET "createdAt" = (SELECT max("createdAt") FROM audit_entries)`,
    );
    const lines = await query<{ id: string; saleId: string | null }>(
      sluice.databaseUrl,
      `SELECT id::text, "saleId" FROM audit_entries ORDER BY audit_entries.id DESC`,
    );
    // What lost money was given back for belongs to no sale.
    expect(lines.filter(({ saleId }) => saleId === null)).not.toEqual([]);
    expect(await readPages(auditLog(null), first)).toEqual(lines.map(({ id }) => id));
    const ofSale = lines.filter(({ saleId }) => saleId === sale.id).map(({ id }) => id);
    expect(ofSale).toHaveLength(2);
    expect(await readPages(auditLog(sale.id), first)).toEqual(ofSale);
    for (const id of ["unknown", "", "a:b"]) expect(await readPages(auditLog(id), first)).toEqual([]);
  });
});

describe("a page is BAD_USER_INPUT", () => {
  it.each([0, -1, 101])("of %i rows", async (first) => {
    for (const list of [ordersOf(sale.id), ordersOf("unknown"), refundsDue(), auditLog(null), auditLog("a:b")]) {
      expect(await refusalOf(list, { first }), list.field).toEqual(["BAD_USER_INPUT"]);
    }
  });

  const uuid = randomUUID();
  it.each([
    ["nothing", ""],
    ["no cursor", "no cursor"],
    ["no time", forgeCursor(["now", "x", uuid])],
    ["time alone", forgeCursor([0])],
    ["a time beyond time", forgeCursor([8.64e15, "1"])],
    ["a key that is no text", forgeCursor([0, 1])],
    ["NUL", forgeCursor([0, "\0"])],
    ["half a surrogate pair", forgeCursor([0, "\ud800"])],
    ["10,000 characters", forgeCursor([0, "1".repeat(10_000)])],
    ["too many parts", forgeCursor([0, "1", uuid, "1"])],
  ])("after a cursor of %s", async (_what, after) => {
    for (const list of [ordersOf(sale.id), refundsDue(), auditLog(sale.id)]) {
      expect(await refusalOf(list, { first: 10, after }), list.field).toEqual(["BAD_USER_INPUT"]);
    }
  });

  it("after a cursor of another list", async () => {
    const cursorOf = async (list: List) => (await pageOf(list, { first: 1 })).pageInfo.endCursor;
    expect(await refusalOf(ordersOf(sale.id), { first: 1, after: await cursorOf(auditLog(null)) })).toHaveLength(1);
    expect(await refusalOf(refundsDue(), { first: 1, after: await cursorOf(ordersOf(sale.id)) })).toHaveLength(1);
    expect(await refusalOf(auditLog(null), { first: 1, after: await cursorOf(ordersOf(sale.id)) })).toHaveLength(1);
  });
});
