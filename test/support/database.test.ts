import { expect, it } from "vitest";
import { createTestDatabase } from "./database.js";
import { query } from "./sql.js";

it("gives every caller a migrated database of its own", async () => {
  const [one, other] = await Promise.all([createTestDatabase(), createTestDatabase()]);
  await query(one.url, "INSERT INTO stock_movements VALUES ('s', 1, 'i', NULL, 'ADJUST', 1)");
  const count = "SELECT count(*)::int AS count FROM stock_movements";
  expect(await query(one.url, count)).toEqual([{ count: 1 }]);
  expect(await query(other.url, count)).toEqual([{ count: 0 }]);
  await one.drop();
  await expect(query(one.url, "SELECT 1")).rejects.toThrow("does not exist");
});
