import { beforeAll, expect, it } from "vitest";
import { settleAndCheck } from "../support/invariants.js";
import { operate } from "../support/operate.js";
import { codeOf, placeOrder, reserveInTheEnd } from "../support/orders.js";
import { type Answer, type Api, prepareSluice, type TestSale, type TestSluice } from "../support/sluice.js";
import { query } from "../support/sql.js";
import { subscribe } from "../support/subscriptions.js";

interface Sale {
  readonly version: number;
  readonly items: readonly { readonly initial: number; readonly remaining: number; readonly soldOut: boolean }[];
}

const SALE = "version items { initial remaining soldOut }";

let sluice: TestSluice;
let first: Api;
let second: Api;
let operator: string;

beforeAll(async () => {
  sluice = await prepareSluice();
  [first, second] = await Promise.all([sluice.startApi(), sluice.startApi(), sluice.startWorker()]);
  operator = await sluice.token("operator", "olga");
});

it("units that are added are on sale when the answer comes, on every process, and whoever watches hears of it", async () => {
  const sale = await sluice.createSale(first, { initial: [1, 7] });
  await placeOrder(sluice, first, sale, "first");
  const watching = [first, second].map((api) => watch(api, sale));
  for (const { until } of watching) await until(({ items }) => items[0]?.soldOut === true, "the end of the stock");
  const buyer = await sluice.token("buyer", "second");
  expect((await reserveInTheEnd(second, buyer, sale)).status).toBe("SOLD_OUT");

  const units = [
    { initial: 5, remaining: 4, soldOut: false },
    { initial: 7, remaining: 7, soldOut: false },
  ];
  expect((await adjust(first, sale, 4)).data?.adjustStock.items).toEqual(units);
  for (const api of [second, first]) expect((await read(api, sale))?.items).toEqual(units);
  for (const { until, values } of watching) {
    await until(({ items }) => items[0]?.remaining === 4, "the new units");
    // One reading at a time: never what is left now beside what there was before.
    for (const { items } of values) expect([1, 4 + 1]).toContain(items[0]?.initial);
    for (const { items } of values) expect((items[0]?.initial ?? 0) - (items[0]?.remaining ?? 0)).toBe(1);
    const versions = values.map(({ version }) => version);
    expect(versions).toEqual([...versions].sort((one, other) => one - other));
  }
  expect((await reserveInTheEnd(second, buyer, sale)).status).toBe("QUEUED");
  await settleAndCheck(sluice.databaseUrl, sluice.redis.url, sale.id);
});

it("units are taken off the sale down to what was promised, and not one further", async () => {
  const sale = await sluice.createSale(first, { initial: [10] });
  await placeOrder(sluice, first, sale, "holder", { quantity: 2 });
  expect((await adjust(second, sale, -7)).data?.adjustStock.items).toMatchObject([{ initial: 3, remaining: 1 }]);
  const tooMany = await adjust(first, sale, -2);
  expect([codeOf(tooMany), tooMany.data]).toEqual(["CONFLICT", null]);
  expect(codeOf(await adjust(first, sale, 2_147_483_647))).toBe("CONFLICT");
  expect((await adjust(first, sale, -1)).data?.adjustStock.items).toMatchObject([{ initial: 2, soldOut: true }]);
  expect((await read(second, sale))?.items).toEqual([{ initial: 2, remaining: 0, soldOut: true }]);
  expect(await auditOf(sale)).toEqual(["-7 for a test", "-1 for a test"]);
  await settleAndCheck(sluice.databaseUrl, sluice.redis.url, sale.id);
});

it("a draft, a paused and a closed sale are adjusted all the same", async () => {
  for (const path of [[], ["openSale", "pauseSale"], ["openSale", "closeSale"]] as const) {
    const sale = await sluice.createSale(first, { initial: [3], open: false });
    for (const mutation of path) await operate(sluice, first, mutation, sale);
    expect((await adjust(second, sale, 2)).data?.adjustStock.items).toMatchObject([{ initial: 5, remaining: 5 }]);
    if (path.length === 0) await operate(sluice, first, "openSale", sale);
    expect((await read(first, sale))?.items).toMatchObject([{ initial: 5, remaining: 5 }]);
    await settleAndCheck(sluice.databaseUrl, sluice.redis.url, sale.id);
  }
});

it("eight adjustments of two processes at once, among reservations, add up", async () => {
  const sale = await sluice.createSale(first, { initial: [30] });
  const buying = Array.from({ length: 10 }, (_, at) => placeOrder(sluice, first, sale, `b-${at}`));
  const adjusting = Array.from({ length: 8 }, (_, at) => adjust(at % 2 ? first : second, sale, at % 4 ? 1 : -1));
  const answers = await Promise.all(adjusting);
  expect(answers.map(codeOf)).toEqual(Array(8).fill(null));
  await Promise.all(buying);
  await settleAndCheck(sluice.databaseUrl, sluice.redis.url, sale.id);
  expect((await read(first, sale))?.items).toEqual([{ initial: 34, remaining: 24, soldOut: false }]);
});

function adjust(api: Api, sale: TestSale, delta: number): Promise<Answer<{ adjustStock: Sale }>> {
  const text = `mutation ($saleId: ID!, $itemId: ID!, $delta: Int!) {
    adjustStock(saleId: $saleId, itemId: $itemId, delta: $delta, reason: "for a test") { ${SALE} }
  }`;
  return api.call(operator, text, { saleId: sale.id, itemId: sale.items[0]?.id, delta });
}

async function read(api: Api, { id }: TestSale): Promise<Sale | null | undefined> {
  return (await api.call<{ sale: Sale | null }>(operator, `query ($id: ID!) { sale(id: $id) { ${SALE} } }`, { id }))
    .data?.sale;
}

function watch(api: Api, { id }: TestSale) {
  const text = `subscription ($id: ID!) { saleUpdates(saleId: $id) { ${SALE} } }`;
  return subscribe<Sale>("WebSocket", api, null, { query: text, variables: { id } });
}

async function auditOf(sale: TestSale): Promise<string[]> {
  const rows = await query<{ line: string }>(
    sluice.databaseUrl,
    `SELECT (details->>'delta') || ' ' || reason AS line FROM audit_entries
     WHERE "saleId" = $1 AND action = 'adjustStock' ORDER BY id`,
    [sale.id],
  );
  return rows.map(({ line }) => line);
}
