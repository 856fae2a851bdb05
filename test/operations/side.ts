import pg from "pg";
import { atEndOfFile } from "../support/test-file.js";
import { waitFor } from "../support/wait.js";
import type { Stores } from "./support.js";

/** A transaction that somebody else holds open. */
export interface SideTransaction {
  query(text: string, values?: unknown[]): Promise<pg.QueryResult>;
  commit(): Promise<void>;
  rollback(): Promise<void>;
}

/** Begins a transaction on a connection of its own and runs a first statement in it. */
export async function transactionOnTheSide(stores: Stores, text: string, values: unknown[]): Promise<SideTransaction> {
  const client = new pg.Client({ connectionString: stores.databaseUrl, application_name: "side" });
  client.on("error", () => {});
  await client.connect();
  const end = async (how: string) => {
    await client.query(how);
    await client.end();
  };
  atEndOfFile(() => client.end().catch(() => {}));
  await client.query("BEGIN");
  await client.query(text, values);
  return {
    query: (more, moreValues) => client.query(more, moreValues),
    commit: () => end("COMMIT"),
    rollback: () => end("ROLLBACK"),
  };
}

/** Waits until a connection of ours waits for a lock. */
export async function waitForBlocked(stores: Stores): Promise<void> {
  await waitFor(
    async () => {
      const blocked = await stores.sql(
        `SELECT 1 FROM pg_stat_activity
         WHERE datname = current_database() AND wait_event_type = 'Lock' AND application_name LIKE 'sluice:%'`,
      );
      return blocked.length > 0;
    },
    { what: "somebody to wait for a lock" },
  );
}
