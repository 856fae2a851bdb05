import { randomUUID } from "node:crypto";
import { beforeAll, describe, expect, it } from "vitest";
import {
  type Answer,
  type Api,
  prepareSluice,
  RESERVE,
  type Role,
  saleInput,
  type TestSluice,
} from "../support/sluice.js";
import { type Snapshot, snapshotOf } from "../support/snapshot.js";
import { NO_REASONS, TRICKY } from "../support/tricky.js";

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
  before = await snapshotOf(sluice.databaseUrl, sluice.redis.url);
});

describe("reserve refuses, and changes nothing", () => {
  const wishes: readonly [string, object, string][] = [
    ["an unknown sale", { saleId: "unknown" }, "NOT_FOUND"],
    ["an unknown item", { itemId: "unknown" }, "NOT_FOUND"],
    ["an item of no sale", { saleId: "unknown", itemId: "unknown" }, "NOT_FOUND"],
    ...[0, -1, -2_147_483_648].map(inQuantity),
    ...[1.5, 2 ** 40, "1", null].map(inQuantity),
    ...["", "x", "123e4567", `${randomUUID()} `, `{${randomUUID()}}`, "g".repeat(36), 7, null].map(
      (requestId): [string, object, string] => [
        `the requestId ${JSON.stringify(requestId)}`,
        { requestId },
        "BAD_USER_INPUT",
      ],
    ),
    ["no requestId", { requestId: undefined }, "BAD_USER_INPUT"],
    ["a field that isn't there", { price: 0 }, "BAD_USER_INPUT"],
  ];
  it.each(wishes)("%s", async (_what, wish, code) => {
    await expectRefusal(code, reserve(tokens.buyer, wish));
  });

  it.each(TRICKY)("a saleId with %s", async (_what, text) => {
    await expectRefusal("NOT_FOUND", reserve(tokens.buyer, { saleId: text }));
  });

  it.each(TRICKY)("an itemId with %s", async (_what, text) => {
    await expectRefusal("NOT_FOUND", reserve(tokens.buyer, { itemId: text }));
  });

  it("the twins of its ids: other case, an accent, a space", async () => {
    for (const twinOf of [swapCase, (id: string) => `${id}\u0301`, (id: string) => `${id} `]) {
      await expectRefusal("NOT_FOUND", reserve(tokens.buyer, { saleId: twinOf(saleId) }));
      await expectRefusal("NOT_FOUND", reserve(tokens.buyer, { itemId: twinOf(itemId) }));
    }
  });
});

describe("createSale refuses, and changes nothing", () => {
  const [item] = saleInput().items as object[];
  const withItem = (field: object) => ({ items: [{ ...item, ...field }] });
  const texts: readonly [string, unknown][] = [
    ...TRICKY.slice(0, 2),
    ["NUL", "a\0b"],
    ["half a pair", "a\ud800"],
    ["201 characters", "x".repeat(201)],
  ];
  const inputs: readonly [string, object][] = [
    ["a window that ends before it starts", { opensAt: "2026-01-02T00:00:00Z", closesAt: "2026-01-01T00:00:00Z" }],
    ["a window of no length", { opensAt: "2026-01-02T00:00:00Z", closesAt: "2026-01-02T00:00:00.000Z" }],
    ["a day that no calendar has", { opensAt: "2026-02-30T00:00:00Z" }],
    ["a time without a zone", { opensAt: "2026-01-01T00:00:00" }],
    ["a time before all sales", { opensAt: "0001-01-01T00:00:00Z" }],
    ["a time after all sales", { closesAt: "9999-01-01T00:00:00Z" }],
    ["no items", { items: [] }],
    ["too many items", { items: Array.from({ length: 101 }, (_, n) => ({ ...item, sku: `S${n}` })) }],
    ["one SKU twice", { items: [item, item] }],
    ["a total that overflows", { maxPerBuyer: 2, ...withItem({ priceMinor: 2 ** 30 }) }],
    ...[-1, 1.5, 2 ** 31].map((initial): [string, object] => [`${initial} units`, withItem({ initial })]),
    ...[-1, 0.5].map((priceMinor): [string, object] => [`a price of ${priceMinor}`, withItem({ priceMinor })]),
    ...["", "eur", "EU", "EURO", "E€R", "€"].map((currency): [string, object] => [
      `the currency '${currency}'`,
      withItem({ currency }),
    ]),
    ...[0, -1, 2 ** 31, null].map((maxPerBuyer): [string, object] => [`a limit of ${maxPerBuyer}`, { maxPerBuyer }]),
    ...[0, -1, 2 ** 31 - 1].map((paymentWindowSeconds): [string, object] => [
      `${paymentWindowSeconds} s to pay`,
      { paymentWindowSeconds },
    ]),
    ...texts.map(([what, title]): [string, object] => [`a title with ${what}`, { title }]),
    ...texts.map(([what, title]): [string, object] => [`an item's title with ${what}`, withItem({ title })]),
    ...["", "a b", "é", "x".repeat(65), "a\0"].map((sku): [string, object] => [
      `the SKU ${JSON.stringify(sku)}`,
      withItem({ sku }),
    ]),
  ];
  it.each(inputs)("%s", async (_what, input) => {
    const query = "mutation ($input: CreateSaleInput!) { createSale(input: $input) { id } }";
    await expectRefusal("BAD_USER_INPUT", api.call(tokens.operator, query, { input: { ...saleInput(), ...input } }));
  });
});

describe("the mutations of a sale's state refuse, and change nothing", () => {
  const fields = [
    "openSale(saleId: $id)",
    'pauseSale(saleId: $id, reason: "r")',
    "resumeSale(saleId: $id)",
    "closeSale(saleId: $id)",
  ];
  it.each(["unknown", ...TRICKY.map(([, text]) => text)])("a sale that isn't there", async (id) => {
    for (const field of fields) {
      await expectRefusal("NOT_FOUND", api.call(tokens.operator, `mutation ($id: ID!) { ${field} { id } }`, { id }));
    }
  });

  it.each(NO_REASONS)("to pause for no reason that can be told", async (reason) => {
    const query = "mutation ($id: ID!, $reason: String!) { pauseSale(saleId: $id, reason: $reason) { id } }";
    await expectRefusal("BAD_USER_INPUT", api.call(tokens.operator, query, { id: saleId, reason }));
  });
});

describe("reads of ids that can't be", () => {
  it.each(TRICKY)("find nothing where an id has %s", async (_what, id) => {
    const query = `query ($id: ID!, $r: UUID!) {
      sale(id: $id) { id } reservation(saleId: $id, requestId: $r) { status } myReservation(saleId: $id) { status } order(id: $id) { id }
    }`;
    const { data, errors } = await api.call(tokens.buyer, query, { id, r: randomUUID() });
    expect(errors).toBeUndefined();
    expect(data).toEqual({ sale: null, reservation: null, myReservation: null, order: null });
    await expectNothingChanged();
  });
});

it("what is compared sees a change, in each store", async () => {
  const changes = Object.keys(await snapshotOf(sluice.databaseUrl, sluice.redis.url)).length;
  await reserve(tokens.buyer, {});
  const after = await snapshotOf(sluice.databaseUrl, sluice.redis.url);
  expect(Object.keys(after).length).toBeGreaterThan(changes);
  expect(after["table requests"]).not.toBe(before["table requests"]);
});

function inQuantity(quantity: unknown): [string, object, string] {
  return [`a quantity of ${JSON.stringify(quantity)}`, { quantity }, "BAD_USER_INPUT"];
}

function reserve(token: string | null, input: object): Promise<Answer<Record<string, unknown>>> {
  return api.call(token, RESERVE, { input: { saleId, itemId, requestId: randomUUID(), ...input } });
}

function swapCase(text: string): string {
  return text.replace(/[a-z]/gi, (letter) =>
    letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase(),
  );
}

async function expectRefusal(code: string, answering: Promise<Answer<Record<string, unknown>>>): Promise<void> {
  const { data, errors } = await answering;
  expect(errors?.map(({ extensions }) => extensions.code)).toEqual([code]);
  expect(errors?.[0]?.message).toMatch(/\w{3}/);
  expect(Object.values(data ?? {}).filter((value) => value !== null)).toEqual([]);
  await expectNothingChanged();
}

async function expectNothingChanged(): Promise<void> {
  expect(await snapshotOf(sluice.databaseUrl, sluice.redis.url)).toEqual(before);
}
