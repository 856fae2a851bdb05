import { PrismaPg } from "@prisma/adapter-pg";
import { PrismaClient } from "./generated/client.js";

export interface DatabaseOptions {
  readonly url: string;
  readonly name: string;
  /** connections at the most */
  readonly pool: number;
  /** how long a caller waits for a connection, in milliseconds */
  readonly waitMs: number;
  readonly statementMs: number;
  readonly lockMs: number;
  readonly idleInTransactionMs: number;
  onError(error: Error): void;
}

export type Database = PrismaClient;

/** What a transaction's body is handed. Database writes take it as their first parameter; none opens one by itself. */
export type Tx = Parameters<Parameters<PrismaClient["$transaction"]>[0]>[0];

/**
 * A pool of connections. The timeouts are the server's own: a frozen process can't keep its rows locked, and a
 * transaction timeout of the client did not end a statement that waited for a lock.
 */
export function connectDatabase(options: DatabaseOptions): Database {
  const adapter = new PrismaPg(
    {
      connectionString: options.url,
      application_name: `sluice:${options.name}`,
      max: options.pool,
      connectionTimeoutMillis: options.waitMs,
      statement_timeout: options.statementMs,
      lock_timeout: options.lockMs,
      idle_in_transaction_session_timeout: options.idleInTransactionMs,
    },
    { onPoolError: options.onError, onConnectionError: options.onError },
  );
  return new PrismaClient({
    adapter,
    transactionOptions: { maxWait: options.waitMs, timeout: options.statementMs * 4 },
  });
}
