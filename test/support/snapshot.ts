import { createHash } from "node:crypto";
import { Redis } from "ioredis";
import { query } from "./sql.js";

/** Everything that is stored, to be compared: a line a table, a line a Redis key. */
export type Snapshot = Readonly<Record<string, string>>;

/** Takes down what the stores hold. Only comparable while nothing runs that writes by the clock: no worker. */
export async function snapshotOf(databaseUrl: string, redisUrl: string): Promise<Snapshot> {
  return Object.fromEntries([...(await tablesOf(databaseUrl)), ...(await keysOf(redisUrl))]);
}

async function tablesOf(url: string): Promise<[string, string][]> {
  const tables = await query<{ name: string }>(
    url,
    "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename",
  );
  const contents = tables.map(({ name }) => {
    const rows = `SELECT t::text AS row FROM "${name}" t`;
    return `SELECT '${name}' AS name, count(*) || ' rows, ' || md5(coalesce(string_agg(row, E'\\n' ORDER BY row), '')) AS rows
            FROM (${rows}) ${name}_rows`;
  });
  const found = await query<{ name: string; rows: string }>(url, contents.join(" UNION ALL "));
  return found.map(({ name, rows }) => [`table ${name}`, rows]);
}

async function keysOf(url: string): Promise<[string, string][]> {
  const client = new Redis(url, { maxRetriesPerRequest: 1 });
  try {
    const keys = (await client.keys("*")).sort();
    return await Promise.all(
      keys.map(async (key): Promise<[string, string]> => {
        const dump = await client.dumpBuffer(key);
        return [`key ${key}`, createHash("sha256").update(dump).digest("hex")];
      }),
    );
  } finally {
    client.disconnect();
  }
}
