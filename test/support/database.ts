import { randomUUID } from "node:crypto";
import { inject } from "vitest";
import { TEMPLATE } from "./run-dir.js";
import { query } from "./sql.js";
import { atEndOfFile } from "./test-file.js";

export type TestDatabase = {
  url: string;
  /** Also with connections open. Happens by itself at the end of the test file. */
  drop(): Promise<void>;
};

/** A database of one's own: migrated, a clone of the run's template, or with `empty` one without any table. */
export async function createTestDatabase(options: { empty?: boolean } = {}): Promise<TestDatabase> {
  const server = inject("postgresUrl");
  const name = `test_${randomUUID().replaceAll("-", "")}`;
  await query(server, `CREATE DATABASE ${name} TEMPLATE ${options.empty ? "template0" : TEMPLATE}`);
  const url = new URL(server);
  url.pathname = name;
  const drop = async () => {
    await query(server, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
  };
  atEndOfFile(drop);
  return { url: url.href, drop };
}
