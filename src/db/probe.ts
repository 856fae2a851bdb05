import type { Database } from "./client.js";

/**
 * Whether the database can be sold from: it answers, has our tables, and takes writes.
 * @throws a database error, or an Error that says what is missing
 */
export async function probeDatabase(db: Database): Promise<void> {
  const rows = await db.$queryRaw<{ readOnly: boolean; tables: boolean }[]>`
    SELECT pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on' AS "readOnly",
           to_regclass('requests') IS NOT NULL AS tables`;
  if (rows[0]?.readOnly !== false) throw new Error("the database is read-only");
  if (!rows[0].tables) throw new Error("the database has none of our tables");
}
