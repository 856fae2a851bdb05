import type { Socket } from "node:net";
import { PrismaPg } from "@prisma/adapter-pg";
import pg from "pg";
import { SECOND } from "../domain/time.js";
import type { PoolUse } from "../observability/metrics.js";
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
  /** how long a connection is used before it is made anew, in seconds; for ever where left out */
  readonly lifetimeSeconds?: number;
  /** is handed what tells the pool's use, at any moment and without asking the database */
  watch?(use: () => PoolUse): void;
  onError(error: Error): void;
}

export type Database = PrismaClient;

/** What a transaction's body is handed. Database writes take it as their first parameter; none opens one by itself. */
export type Tx = Parameters<Parameters<PrismaClient["$transaction"]>[0]>[0];

/** What a single statement can be run on: a transaction, or the pool, where the statement is a transaction of its own. */
export type Statements = Pick<Tx, "$queryRaw" | "$executeRaw">;

/**
 * A pool of connections. The timeouts are the server's own: a frozen process can't keep its rows locked, and a
 * transaction timeout of the client did not end a statement that waited for a lock.
 */
export function connectDatabase(options: DatabaseOptions): Database {
  const pool = new pg.Pool({
    connectionString: options.url,
    application_name: `sluice:${options.name}`,
    max: options.pool,
    connectionTimeoutMillis: options.waitMs,
    statement_timeout: options.statementMs,
    lock_timeout: options.lockMs,
    idle_in_transaction_session_timeout: options.idleInTransactionMs,
    ...(options.lifetimeSeconds !== undefined && { maxLifetimeSeconds: options.lifetimeSeconds }),
  });
  options.watch?.(() => ({
    inUse: pool.totalCount - pool.idleCount,
    idle: pool.idleCount,
    waiting: pool.waitingCount,
  }));
  giveUpSilentConnections(pool, options.statementMs + options.lockMs + SILENCE_MS);
  const adapter = new PrismaPg(pool, {
    disposeExternalPool: true,
    statementNameGenerator: preparedName,
    onPoolError: options.onError,
    onConnectionError: options.onError,
  });
  return new PrismaClient({
    adapter,
    transactionOptions: { maxWait: options.waitMs, timeout: options.statementMs * 4 },
  });
}

/**
 * Statements that say so in their first line, `prepared: name` in a comment, are parsed and planned once a connection, and run
 * with that plan whatever their values are and however the tables grow. It is for the hottest ones that leave the planner no
 * choice; others are planned with their values, since of long lists the plan for a few is a bad one.
 */
function preparedName({ sql }: { readonly sql: string }): string {
  // The driver prepares nothing under an empty name.
  return PREPARED.exec(sql)?.[1] ?? "";
}

const PREPARED = /^\s*\/\* prepared: (\w+) \*\//;

/** How much later than its own timeouts a server's word may come. */
const SILENCE_MS = 1 * SECOND;

/**
 * Ends connections that are in use and on which nothing has moved for so long: a network that swallows everything, or a
 * frozen server. Its own timeouts can't reach us then, and each such connection would be lost to the pool for minutes.
 */
function giveUpSilentConnections(pool: pg.Pool, silentMs: number): void {
  const inUse = new WeakSet<pg.PoolClient>();
  pool.on("acquire", (client) => inUse.add(client));
  pool.on("release", (_error, client) => inUse.delete(client));
  pool.on("connect", (client) => {
    // Between the pool and Prisma there is a moment in which nobody listens: a server that ends the connection just then
    // would end the process. Whoever uses it next hears of it all the same.
    client.on("error", () => {});
    const { stream } = (client as unknown as { connection: { stream: Socket } }).connection;
    stream.setTimeout(silentMs, () => {
      if (inUse.has(client)) stream.destroy(new Error("Connection terminated: the database was silent for too long"));
    });
  });
}
