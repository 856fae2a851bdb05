import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { buyerIdOf, isId, newId, orderIdOf, parseOrderId, parseUuid } from "../../src/domain/ids.js";

const UUID = "123e4567-e89b-42d3-a456-426614174000";

describe("buyerIdOf", () => {
  it("keeps a subject of our alphabet as it is", () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[A-Za-z0-9_-]{1,64}$/), (subject) => {
        fc.pre(!subject.startsWith("h_"));
        expect(buyerIdOf(subject)).toBe(subject);
      }),
    );
  });

  it("makes an id of any subject, the same one every time", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", minLength: 1 }), (subject) => {
        expect(isId(buyerIdOf(subject))).toBe(true);
        expect(buyerIdOf(subject)).toBe(buyerIdOf(subject));
      }),
    );
  });

  it("keeps different subjects different buyers, also those that a store might fold into one", () => {
    const subjects = [
      "ann",
      "Ann",
      "ann ",
      " ann",
      "ann\0",
      "änn",
      "a\u0308nn",
      "ann\n",
      "ann@example.com",
      "Ann@example.com",
      "😀",
      "😁",
      "\ud800",
      "\ud801",
      "\ufffd",
      "a".repeat(64),
      "a".repeat(65),
      "a".repeat(66),
    ];
    expect(new Set(subjects.map(buyerIdOf)).size).toBe(subjects.length);
  });

  it("lets nobody name himself into another's hash", () => {
    const hashed = buyerIdOf("ann@example.com");
    expect(hashed).toMatch(/^h_[A-Za-z0-9_-]{43}$/);
    expect(buyerIdOf(hashed)).not.toBe(hashed);
  });
});

describe("isId", () => {
  it.each(["a", "Z9_-", "x".repeat(64)])("takes %s", (text) => expect(isId(text)).toBe(true));
  it.each(["", "a b", "a.b", "a:b", "{a}", "ä", "a\n", "x".repeat(65)])("refuses %j", (text) =>
    expect(isId(text)).toBe(false),
  );
});

describe("newId", () => {
  it("makes ids of the length asked for, no two alike", () => {
    const ids = Array.from({ length: 10_000 }, () => newId());
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.every((id) => isId(id) && id.length === 12)).toBe(true);
    expect(newId(20)).toHaveLength(20);
  });
});

describe("parseUuid", () => {
  it("lowers upper case", () => expect(parseUuid(UUID.toUpperCase())).toBe(UUID));
  it.each(["", "x", UUID.slice(1), `${UUID}0`, `${UUID}\n`, ` ${UUID}`, `{${UUID}}`, UUID.replaceAll("-", "")])(
    "refuses %j",
    (text) => expect(parseUuid(text)).toBeNull(),
  );
});

describe("orderIdOf", () => {
  it("is taken apart again by parseOrderId", () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[A-Za-z0-9_-]{1,64}$/), fc.uuid(), (saleId, requestId) => {
        expect(parseOrderId(orderIdOf(saleId, requestId))).toEqual({ saleId, requestId });
      }),
    );
  });

  it.each(["", ".", "sale", "sale.", `.${UUID}`, `a.b.${UUID}`, `sa le.${UUID}`, `sale.${UUID}.x`])(
    "isn't what %j is",
    (text) => expect(parseOrderId(text)).toBeNull(),
  );
});
