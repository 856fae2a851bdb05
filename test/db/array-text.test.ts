import { beforeAll, describe, expect, it } from "vitest";
import { idArray, numberArray, textArray, timeArray } from "../../src/db/array-text.js";
import { createTestDatabase } from "../support/database.js";
import { query } from "../support/sql.js";

let url: string;

beforeAll(async () => {
  url = (await createTestDatabase({ empty: true })).url;
});

async function through(text: string, type: string): Promise<unknown> {
  const [row] = await query<{ values: unknown }>(url, `SELECT to_json($1::${type}[]) AS values`, [text]);
  return row?.values;
}

describe("a column as text", () => {
  it.each([
    ["ids of ours", ["anna", "h_-9"]],
    ["words that mean something to PostgreSQL", ["null", "NULL", "", " ", "{}", "a,b"]],
    ["quotes and backslashes", ['"', "\\", '\\"', "'", '","']],
    ["other alphabets", ["žluťoučký", "🐙", "\n\t"]],
  ])("arrives as it was: %s", async (_what, texts) => {
    expect(await through(textArray(texts), "text")).toEqual(texts);
  });

  it("arrives as it was: nothing, ids, numbers, times", async () => {
    expect(await through(textArray([]), "text")).toEqual([]);
    expect(await through(idArray([]), "uuid")).toEqual([]);
    const ids = ["00000000-0000-4000-8000-000000000000", "ffffffff-ffff-4fff-bfff-ffffffffffff"];
    expect(await through(idArray(ids), "uuid")).toEqual(ids);
    expect(await through(numberArray([0, -1, Number.MAX_SAFE_INTEGER]), "bigint")).toEqual([0, -1, 9007199254740991]);
    const times = [new Date(0), new Date("2026-11-30T10:00:00.001Z")];
    const arrived = (await through(timeArray(times), "timestamptz")) as string[];
    expect(arrived.map((time) => new Date(time))).toEqual(times);
  });
});
