import pg from "pg";

/** Runs one statement (without values: also several) on a connection of its own and returns the rows. */
export async function query<Row extends pg.QueryResultRow = pg.QueryResultRow>(
  url: string,
  sql: string,
  values?: unknown[],
): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<Row>(sql, values);
    return rows;
  } finally {
    await client.end();
  }
}
