import fc from "fast-check";
import { expect, test } from "vitest";
import { isId, newId, parseUuid } from "../../src/domain/ids.js";
import { WRITE_ORDER } from "../../src/queue/jobs.js";

const hex = (digits: number) =>
  fc.string({ unit: fc.constantFrom(..."0123456789abcdefABCDEF"), minLength: digits, maxLength: digits });
const anyUuid = fc.tuple(hex(8), hex(4), hex(4), hex(4), hex(12)).map((parts) => parts.join("-"));
const anyId = fc.string({
  unit: fc.constantFrom(..."ABCXYZabcxyz0189_-"),
  minLength: 1,
  maxLength: 64,
});

test("whatever the entry accepts as an id, the worker can read in a job", () => {
  fc.assert(
    fc.property(anyUuid, anyId, (text, saleId) => {
      const requestId = parseUuid(text);
      expect(isId(saleId)).toBe(true);
      expect(WRITE_ORDER.payload.safeParse({ v: 1, saleId, requestId }).success).toBe(true);
    }),
  );
  expect(isId(newId())).toBe(true);
});
