/**
 * Applies prisma/migrations as `prisma migrate deploy` does, without the engine binary that the Prisma CLI downloads:
 * same folder, same `_prisma_migrations` table, same checksums, same lock, so that either can carry on after the other.
 */
import { createHash, randomUUID } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import pg from "pg";

/** The advisory lock that Prisma's engine takes for the time of a deployment. */
const MIGRATION_LOCK = 72_707_369;

/** Word for word as Prisma creates it, so that its engine finds no difference. */
const CREATE_HISTORY = `CREATE TABLE _prisma_migrations (
    id                      VARCHAR(36) PRIMARY KEY NOT NULL,
    checksum                VARCHAR(64) NOT NULL,
    finished_at             TIMESTAMPTZ,
    migration_name          VARCHAR(255) NOT NULL,
    logs                    TEXT,
    rolled_back_at          TIMESTAMPTZ,
    started_at              TIMESTAMPTZ NOT NULL DEFAULT now(),
    applied_steps_count     INTEGER NOT NULL DEFAULT 0
)`;

/** What keeps a database from being migrated; the message says which migration, why, and what to do. */
export class MigrationError extends Error {
  override readonly name = "MigrationError";
}

export type ApplyMigrationsInput = {
  databaseUrl: string;
  /** The folder with one folder for each migration; by default the package's own prisma/migrations. */
  migrationsDir?: string;
  log?: (line: string) => void;
};

type Migration = { name: string; script: string };
type HistoryRow = { migration_name: string; checksum: string; finished_at: Date | null; logs: string | null };

/**
 * Applies what is not yet applied, in the order of the folder names, and returns the names. Processes that start
 * together wait for each other; the later one finds nothing to do. Nothing is written when all is applied.
 *
 * A script is sent as it is, so PostgreSQL runs it as one transaction, unless it holds a single statement that refuses
 * one (CREATE INDEX CONCURRENTLY) or its own BEGIN and COMMIT.
 *
 * @throws {MigrationError} a migration failed, now or earlier; a file was edited after it was applied; the database
 * has tables but no history. Running it again is safe: it changes nothing until the cause is gone.
 */
export async function applyMigrations(input: ApplyMigrationsInput): Promise<{ applied: string[] }> {
  const migrations = readMigrations(input.migrationsDir ?? defaultMigrationsDir());
  const client = new pg.Client({ connectionString: input.databaseUrl, application_name: "sluice-migrate" });
  await client.connect();
  // A connection that breaks rejects the query that is under way; without a listener it would also end the process.
  client.on("error", () => {});
  try {
    // Held by the session, not by a transaction: each migration commits by itself. It ends with the connection.
    await client.query("SELECT pg_advisory_lock($1)", [MIGRATION_LOCK]);
    const history = await readHistory(client);
    refuseFailed(history ?? []);
    refuseEdited(history ?? [], migrations);
    const done = new Set(history?.map((row) => row.migration_name));
    const missing = migrations.filter((migration) => !done.has(migration.name));
    if (missing.length > 0 && !history) await createHistory(client);
    for (const migration of missing) {
      await applyMigration(client, migration);
      input.log?.(`applied migration ${migration.name}`);
    }
    return { applied: missing.map((migration) => migration.name) };
  } finally {
    await client.end();
  }
}

/**
 * The migrations that this version of the code needs and the database lacks, by name. Writes nothing.
 * @throws an error of the driver where the database doesn't answer within `timeoutMs`
 */
export async function findPendingMigrations(databaseUrl: string, timeoutMs: number): Promise<string[]> {
  const client = new pg.Client({
    connectionString: databaseUrl,
    application_name: "sluice-migrate",
    connectionTimeoutMillis: timeoutMs,
    query_timeout: timeoutMs,
  });
  client.on("error", () => {});
  await client.connect();
  try {
    const done = new Set(
      (await readHistory(client))?.filter((row) => row.finished_at).map((row) => row.migration_name),
    );
    return readMigrations(defaultMigrationsDir())
      .map(({ name }) => name)
      .filter((name) => !done.has(name));
  } finally {
    await client.end();
  }
}

function readMigrations(directory: string): Migration[] {
  return readdirSync(directory, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
    .sort()
    .map((name) => ({ name, script: readFileSync(join(directory, name, "migration.sql"), "utf8") }));
}

/** Upward from here, because this file lies in src/db under tsx and in dist/src/db in a build. */
function defaultMigrationsDir(): string {
  const start = dirname(fileURLToPath(import.meta.url));
  for (let directory = start; ; directory = dirname(directory)) {
    const candidate = join(directory, "prisma", "migrations");
    if (existsSync(join(candidate, "migration_lock.toml"))) return candidate;
    if (directory === dirname(directory)) throw new MigrationError(`no prisma/migrations in or above ${start}`);
  }
}

/** Null if there is no history yet. Migrations that were marked as rolled back count as never applied. */
async function readHistory(client: pg.Client): Promise<HistoryRow[] | null> {
  const table = await client.query("SELECT to_regclass('_prisma_migrations') IS NOT NULL AS exists");
  if (!table.rows[0].exists) return null;
  const { rows } = await client.query<HistoryRow>(
    `SELECT migration_name, checksum, finished_at, logs FROM _prisma_migrations
     WHERE rolled_back_at IS NULL ORDER BY started_at`,
  );
  return rows;
}

/** Prisma does the same: a history begins in an empty schema, or somebody else's tables would get mixed with ours. */
async function createHistory(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ name: string }>(
    "SELECT tablename AS name FROM pg_tables WHERE schemaname = current_schema() LIMIT 1",
  );
  if (rows[0]) {
    throw new MigrationError(
      `The database is not empty (it has a table "${rows[0].name}") and has no migration history. Use an empty database.`,
    );
  }
  await client.query(CREATE_HISTORY);
}

function refuseFailed(history: HistoryRow[]): void {
  const failed = history.find((row) => row.finished_at === null);
  if (!failed) return;
  throw new MigrationError(
    `Migration ${failed.migration_name} failed earlier, nothing more is applied after it. ${failed.logs ?? ""}\n` +
      `Repair what it left, then: npx prisma migrate resolve --rolled-back ${failed.migration_name}`,
  );
}

function refuseEdited(history: HistoryRow[], migrations: Migration[]): void {
  for (const { name, script } of migrations) {
    const row = history.find((applied) => applied.migration_name === name);
    if (!row || acceptedChecksums(script).includes(row.checksum)) continue;
    throw new MigrationError(
      `Migration ${name} was edited after it was applied: the database has checksum ${row.checksum}, ` +
        `the file ${checksum(script)}. Restore the file and put the change into a new migration.`,
    );
  }
}

async function applyMigration(client: pg.Client, { name, script }: Migration): Promise<void> {
  const id = randomUUID();
  await client.query(
    "INSERT INTO _prisma_migrations (id, checksum, started_at, migration_name) VALUES ($1, $2, $3, $4)",
    [id, checksum(script), new Date(), name],
  );
  try {
    await client.query(script);
  } catch (error) {
    // A script with its own BEGIN leaves its transaction open when it fails.
    await client.query("ROLLBACK");
    await client.query("UPDATE _prisma_migrations SET logs = $2 WHERE id = $1", [id, describe(name, error)]);
    throw new MigrationError(describe(name, error), { cause: error });
  }
  await client.query(
    "UPDATE _prisma_migrations SET applied_steps_count = applied_steps_count + 1, finished_at = $2 WHERE id = $1",
    [id, new Date()],
  );
}

/** In the words of Prisma's engine, which shows them to whoever finds the row. */
function describe(name: string, error: unknown): string {
  const code = error instanceof pg.DatabaseError ? error.code : undefined;
  const message = error instanceof Error ? error.message : String(error);
  return [
    "A migration failed to apply. New migrations cannot be applied before the error is recovered from.",
    `Migration name: ${name}`,
    ...(code ? [`Database error code: ${code}`] : []),
    `Database error:\n${message}`,
  ].join("\n\n");
}

function checksum(script: string): string {
  return createHash("sha256").update(script).digest("hex");
}

/** As Prisma, which lets a checkout with other line ends pass. */
function acceptedChecksums(script: string): string[] {
  const unix = script.replaceAll("\r\n", "\n");
  return [script, unix, unix.replaceAll("\n", "\r\n")].map(checksum);
}
