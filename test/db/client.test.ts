import { expect, it } from "vitest";
import { connectDatabase } from "../../src/db/client.js";
import { SECOND } from "../../src/domain/time.js";
import { createTestDatabase } from "../support/database.js";
import { atEndOfFile } from "../support/test-file.js";

it("prepares the statements that say so, once a connection, and no others", async () => {
  const { url } = await createTestDatabase();
  const timeouts = { waitMs: SECOND, statementMs: SECOND, lockMs: SECOND, idleInTransactionMs: SECOND };
  const database = connectDatabase({ ...timeouts, url, name: "test", pool: 1, onError: () => {} });
  atEndOfFile(() => database.$disconnect());
  for (const number of [1, 2]) {
    await database.$queryRaw`
      /* prepared: half_of */
      SELECT ${number}::int / 2 AS half`;
    await database.$queryRaw`SELECT ${number}::int AS number`;
    await database.sale.findMany({ where: { id: { in: ["a", "b"].slice(0, number) } } });
  }
  const prepared =
    await database.$queryRaw`SELECT name, (generic_plans + custom_plans)::int AS runs FROM pg_prepared_statements`;
  expect(prepared).toEqual([{ name: "half_of", runs: 2 }]);
});
