import { randomUUID } from "node:crypto";
import { beforeAll, describe, expect, it } from "vitest";
import { operate } from "../support/operate.js";
import {
  type Api,
  prepareSluice,
  reserve,
  type TestSale,
  type TestSluice,
  waitUntilDecided,
} from "../support/sluice.js";

interface Page<Node> {
  readonly edges: readonly { readonly cursor: string; readonly node: Node }[];
  readonly pageInfo: {
    readonly hasNextPage: boolean;
    readonly hasPreviousPage: boolean;
    readonly startCursor: string | null;
    readonly endCursor: string | null;
  };
}

const PAGE_INFO = "pageInfo { hasNextPage hasPreviousPage startCursor endCursor }";
const SALES = `query ($first: Int!, $after: String, $state: SaleState) {
  sales(first: $first, after: $after, state: $state) { edges { cursor node { id state } } ${PAGE_INFO} }
}`;
const MY_ORDERS = `query ($first: Int!, $after: String) {
  myOrders(first: $first, after: $after) { edges { cursor node { id } } ${PAGE_INFO} }
}`;

let sluice: TestSluice;
let api: Api;
let operator: string;
let ann: string;
let bob: string;
/** A draft, four open ones, and a closed one, the oldest first. */
let sales: TestSale[];
let draft: TestSale;
/** Ann's order ids, in the order they were made. */
const orders: string[] = [];

beforeAll(async () => {
  sluice = await prepareSluice();
  [api] = await Promise.all([sluice.startApi(), sluice.startWorker()]);
  [operator, ann, bob] = await Promise.all([
    sluice.token("operator", "olga"),
    sluice.token("buyer", "ann"),
    sluice.token("buyer", "bob"),
  ]);
  sales = [];
  for (const open of [false, true, true, true, true, true]) sales.push(await sluice.createSale(api, { open }));
  draft = sales[0] as TestSale;
  for (const sale of sales.slice(1)) {
    const requestId = randomUUID();
    await reserve(api, ann, sale, { requestId });
    await waitUntilDecided(api, ann, sale.id, requestId);
    orders.push(`${sale.id}.${requestId}`);
  }
  await operate(sluice, api, "closeSale", sales.at(-1) as TestSale);
});

describe("sales", () => {
  it("are listed the newest first, drafts to operators only", async () => {
    const newest = sales.map(({ id }) => id).reverse();
    expect(await idsOf(operator)).toEqual(newest);
    for (const token of [null, ann]) expect(await idsOf(token)).toEqual(newest.slice(0, -1));
  });

  it("are listed by state, and a draft never to anybody but an operator", async () => {
    expect(await idsOf(null, { state: "CLOSED" })).toEqual([sales.at(-1)?.id]);
    expect(await idsOf(null, { state: "OPEN" })).toEqual(
      sales
        .slice(1, -1)
        .map(({ id }) => id)
        .reverse(),
    );
    expect(await idsOf(operator, { state: "DRAFT" })).toEqual([draft.id]);
    for (const token of [null, ann]) expect(await idsOf(token, { state: "DRAFT" })).toEqual([]);
  });

  it("are read one by one, a draft by operators only, and null where there is none", async () => {
    const read = async (token: string | null, id: string) =>
      (await api.call<{ sale: { id: string } | null }>(token, "query ($id: ID!) { sale(id: $id) { id } }", { id })).data
        ?.sale;
    expect(await read(operator, draft.id)).toEqual({ id: draft.id });
    for (const token of [null, ann]) expect(await read(token, draft.id)).toBeNull();
    for (const id of [sales[1]?.id ?? "", sales.at(-1)?.id ?? ""]) expect(await read(null, id)).toEqual({ id });
    expect(await read(operator, "there-is-none")).toBeNull();
  });
});

describe("pages", () => {
  it("of sales follow each other without a gap or a repeat", async () => {
    await expectPages(
      SALES,
      "sales",
      null,
      sales
        .slice(1)
        .map(({ id }) => id)
        .reverse(),
    );
  });

  it("of a buyer's orders follow each other, the newest first, over all sales", async () => {
    await expectPages(MY_ORDERS, "myOrders", ann, [...orders].reverse());
    expect((await pageOf(MY_ORDERS, "myOrders", bob, { first: 100 })).edges).toEqual([]);
  });

  it.each([0, -1, 101, 2_147_483_647])("of %i rows are BAD_USER_INPUT", async (first) => {
    await expectBadInput(null, SALES, { first });
    await expectBadInput(ann, MY_ORDERS, { first });
  });

  const uuid = randomUUID();
  it.each([
    ["nothing", ""],
    ["no cursor", "no cursor"],
    ["no list", cursor({})],
    ["an empty list", cursor([])],
    ["no time", cursor(["now", "x", uuid])],
    ["a time that is no number", cursor([null, "x", uuid])],
    ["more parts than there are", cursor([0, "x", uuid, "y"])],
    ["a time before all calendars", cursor([-8.64e15, "x", uuid], [-8.64e15, "x"])],
    ["a time after all calendars", cursor([8.64e15, "x", uuid], [8.64e15, "x"])],
    ["a time beyond time", cursor([1e300, "x", uuid], [1e300, "x"])],
    ["ids that are numbers", cursor([0, 1, 2], [0, 1])],
    ["an id that is none", cursor([0, "x", "no-uuid"], [0, "a:b"])],
    ["NUL", cursor([0, "\0", uuid], [0, "\0"])],
    ["half a surrogate pair", cursor([0, "\ud800", uuid], [0, "\ud800"])],
    ["10,000 characters", cursor([0, "x".repeat(10_000), uuid], [0, "x".repeat(10_000)])],
  ])("after a cursor of %s are BAD_USER_INPUT", async (_what, after) => {
    const [ofOrders, ofSales] = typeof after === "string" ? [after, after] : after;
    await expectBadInput(null, SALES, { first: 10, after: ofSales });
    await expectBadInput(ann, MY_ORDERS, { first: 10, after: ofOrders });
  });

  it("after a cursor of another list are BAD_USER_INPUT", async () => {
    const ofSales = (await pageOf(SALES, "sales", null, { first: 1 })).pageInfo.endCursor;
    const ofOrders = (await pageOf(MY_ORDERS, "myOrders", ann, { first: 1 })).pageInfo.endCursor;
    await expectBadInput(null, SALES, { first: 1, after: ofOrders });
    await expectBadInput(ann, MY_ORDERS, { first: 1, after: ofSales });
  });
});

describe("a buyer's own", () => {
  const RESERVATION = "query ($s: ID!, $r: UUID!) { reservation(saleId: $s, requestId: $r) { requestId status } }";
  const ORDER = "query ($id: ID!) { order(id: $id) { id status totalMinor currency paidAt } }";

  it("reservation is for its buyer and operators, null for everybody else and where there is none", async () => {
    const [saleId = "", requestId = ""] = orders[0]?.split(".") ?? [];
    const read = async (token: string, s = saleId, r = requestId) =>
      (await api.call<{ reservation: unknown }>(token, RESERVATION, { s, r })).data?.reservation;
    for (const token of [ann, operator]) expect(await read(token)).toEqual({ requestId, status: "SUCCESS" });
    expect(await read(ann, saleId, requestId.toUpperCase())).toEqual({ requestId, status: "SUCCESS" });
    expect(await read(bob)).toBeNull();
    expect(await read(ann, saleId, randomUUID())).toBeNull();
    expect(await read(ann, sales[2]?.id, requestId)).toBeNull();
    expect(await read(ann, "there-is-none", requestId)).toBeNull();
  });

  it("order is for its buyer and operators, null for everybody else and where there is none", async () => {
    const read = async (token: string, id = orders[0]) =>
      (await api.call<{ order: unknown }>(token, ORDER, { id })).data?.order;
    const order = { id: orders[0], status: "PENDING_PAYMENT", totalMinor: 2_500, currency: "EUR", paidAt: null };
    for (const token of [ann, operator]) expect(await read(token)).toEqual(order);
    expect(await read(bob)).toBeNull();
    for (const id of [
      "",
      ".",
      "x",
      `${draft.id}.`,
      `.${randomUUID()}`,
      `${draft.id}.${randomUUID()}`,
      `${orders[0]} `,
    ]) {
      expect(await read(ann, id), id).toBeNull();
    }
  });

  it("myReservation is the latest in that sale, and null before there is one", async () => {
    const sale = await sluice.createSale(api);
    const mine = async (token: string, saleId = sale.id) => {
      const query = "query ($s: ID!) { myReservation(saleId: $s) { requestId saleId item { id initial } quantity } }";
      return (await api.call<{ myReservation: unknown }>(token, query, { s: saleId })).data?.myReservation;
    };
    expect(await mine(bob)).toBeNull();
    const requestId = randomUUID();
    await reserve(api, bob, sale, { requestId, quantity: 2 });
    const item = { id: sale.items[0]?.id, initial: 100 };
    expect(await mine(bob)).toEqual({ requestId, saleId: sale.id, item, quantity: 2 });
    expect(await mine(ann)).toBeNull();
    expect(await mine(bob, "there-is-none")).toBeNull();
  });
});

it("serverTime is now, in UTC to the millisecond", async () => {
  const { data } = await api.call<{ serverTime: string }>(null, "{ serverTime }");
  expect(data?.serverTime).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  expect(Math.abs(Date.parse(data?.serverTime ?? "") - Date.now())).toBeLessThan(2_000);
});

async function pageOf(
  query: string,
  field: string,
  token: string | null,
  variables: object,
): Promise<Page<{ id: string }>> {
  const { data, errors } = await api.call<Record<string, Page<{ id: string }>>>(token, query, { ...variables });
  if (errors) throw new Error(JSON.stringify(errors));
  return data?.[field] as Page<{ id: string }>;
}

async function expectBadInput(token: string | null, query: string, variables: Record<string, unknown>): Promise<void> {
  const { errors } = await api.call(token, query, variables);
  expect(errors?.map(({ extensions }) => extensions.code)).toEqual(["BAD_USER_INPUT"]);
}

async function idsOf(token: string | null, variables: object = {}): Promise<string[]> {
  const { edges } = await pageOf(SALES, "sales", token, { first: 100, ...variables });
  return edges.map(({ node }) => node.id);
}

/** Reads a list two rows at a time and expects these ids. */
async function expectPages(query: string, field: string, token: string | null, ids: readonly string[]): Promise<void> {
  const found: string[] = [];
  let after: string | null = null;
  for (let page = 0; ; page += 1) {
    const { edges, pageInfo }: Page<{ id: string }> = await pageOf(query, field, token, { first: 2, after });
    found.push(...edges.map(({ node }) => node.id));
    const [startCursor, endCursor] = [edges.at(0)?.cursor, edges.at(-1)?.cursor];
    const hasNextPage = found.length < ids.length;
    expect(pageInfo).toEqual({ hasNextPage, hasPreviousPage: page > 0, startCursor, endCursor });
    if (!hasNextPage) break;
    after = pageInfo.endCursor;
  }
  expect(found).toEqual(ids);
}

/** Cursors as the API makes them, of whatever it wouldn't: for orders, and for sales where those have other parts. */
function cursor(ofOrders: unknown, ofSales = ofOrders): [string, string] {
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
  return [encode(ofOrders), encode(ofSales)];
}
