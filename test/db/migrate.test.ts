import { createHash } from "node:crypto";
import { appendFileSync, cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { NO_FILTERS, readMigrations, readSchema, root, withSchemaEngine } from "../../scripts/schema-engine.mjs";
import { applyMigrations } from "../../src/db/migrate.js";
import { createTestDatabase } from "../support/database.js";
import { spawnNode } from "../support/processes.js";
import { query } from "../support/sql.js";
import { makeTempDir } from "../support/test-file.js";
import { waitFor } from "../support/wait.js";

const COMMITTED = join(root, "prisma/migrations");
const NAMES = readdirSync(COMMITTED).filter((name) => /^\d/.test(name));

const emptyDatabase = () => createTestDatabase({ empty: true });
const rowsOf = (url: string) => query(url, "SELECT * FROM _prisma_migrations ORDER BY started_at, id");

/** A copy of the committed migrations, with one more where a script is given. */
function migrationsWith(script?: string) {
  const directory = join(makeTempDir("migrations"), "migrations");
  cpSync(COMMITTED, directory, { recursive: true });
  if (script !== undefined) {
    mkdirSync(join(directory, "29990101000000_next"));
    writeFileSync(join(directory, "29990101000000_next/migration.sql"), script);
  }
  return directory;
}

describe("applyMigrations", () => {
  it("brings an empty database up to date, with a row each as Prisma writes it", async () => {
    const { url } = await emptyDatabase();
    const logged: string[] = [];
    expect(await applyMigrations({ databaseUrl: url, log: (line) => logged.push(line) })).toEqual({ applied: NAMES });
    expect(logged).toEqual(NAMES.map((name) => `applied migration ${name}`));
    for (const row of await rowsOf(url)) {
      const script = readFileSync(join(COMMITTED, row.migration_name, "migration.sql"));
      expect(row).toEqual({
        id: expect.stringMatching(/^[0-9a-f-]{36}$/),
        checksum: createHash("sha256").update(script).digest("hex"),
        migration_name: row.migration_name,
        started_at: expect.any(Date),
        finished_at: expect.any(Date),
        rolled_back_at: null,
        logs: null,
        applied_steps_count: 1,
      });
    }
  });

  it("does nothing the second time", async () => {
    const { url } = await emptyDatabase();
    await applyMigrations({ databaseUrl: url });
    const before = await rowsOf(url);
    expect(await applyMigrations({ databaseUrl: url })).toEqual({ applied: [] });
    expect(await rowsOf(url)).toEqual(before);
  });

  it("applies each migration once when several start together, in one process or in many", async () => {
    const { url } = await emptyDatabase();
    const here = [1, 2, 3].map(() => applyMigrations({ databaseUrl: url }));
    const elsewhere = [1, 2].map(() => spawnNode("test/db/fixtures/migrate.ts", { DATABASE_URL: url }));
    const printed = await Promise.all(
      elsewhere.map(async (starting) => (await (await starting).waitForLine(/^applied (.*)$/))[1]),
    );
    const applied = [...(await Promise.all(here)).map((result) => result.applied.join()), ...printed];
    expect(applied.filter((names) => names !== "")).toEqual([NAMES.join()]);
    expect(await rowsOf(url)).toHaveLength(NAMES.length);
  });

  it("waits for whoever holds Prisma's lock", async () => {
    const { url } = await emptyDatabase();
    const holder = await spawnNode("test/db/fixtures/hold-lock.ts", { DATABASE_URL: url });
    await holder.waitForLine(/holding/);
    const waiting = applyMigrations({ databaseUrl: url });
    const blocked = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory'";
    await waitFor(async () => (await query(url, blocked)).length > 0, { what: "the migration to wait" });
    holder.kill("SIGKILL");
    expect(await waiting).toEqual({ applied: NAMES });
  });

  it("refuses a migration that was edited after it was applied", async () => {
    const { url } = await emptyDatabase();
    const migrationsDir = migrationsWith("SELECT 1");
    await applyMigrations({ databaseUrl: url, migrationsDir });
    appendFileSync(join(migrationsDir, "29990101000000_next/migration.sql"), "\n-- a harmless remark");
    await expect(applyMigrations({ databaseUrl: url, migrationsDir })).rejects.toThrow(
      /29990101000000_next was edited after it was applied/,
    );
  });

  it("accepts a checkout with other line ends, as Prisma does", async () => {
    const { url } = await emptyDatabase();
    const migrationsDir = migrationsWith("SELECT 1;\nSELECT 2;\n");
    await applyMigrations({ databaseUrl: url, migrationsDir });
    writeFileSync(join(migrationsDir, "29990101000000_next/migration.sql"), "SELECT 1;\r\nSELECT 2;\r\n");
    expect(await applyMigrations({ databaseUrl: url, migrationsDir })).toEqual({ applied: [] });
  });

  it("reports a broken migration, undoes it whole, and applies nothing more until it is resolved", async () => {
    const { url } = await emptyDatabase();
    const migrationsDir = migrationsWith("CREATE TABLE half_done (id int);\nINSERT INTO nowhere VALUES (1);");
    await expect(applyMigrations({ databaseUrl: url, migrationsDir })).rejects.toThrow(
      /29990101000000_next.*42P01.*relation "nowhere" does not exist/s,
    );
    expect(await query(url, "SELECT to_regclass('half_done') AS found")).toEqual([{ found: null }]);
    const failed = (await rowsOf(url)).at(-1);
    expect(failed).toMatchObject({ finished_at: null, rolled_back_at: null, applied_steps_count: 0 });
    expect(failed?.logs).toContain('relation "nowhere" does not exist');

    await expect(applyMigrations({ databaseUrl: url, migrationsDir })).rejects.toThrow(/failed earlier.*nowhere/s);
    await withSchemaEngine(url, async (engine) => {
      const migrationsList = readMigrations(migrationsDir);
      const asked = { migrationsList, optInToShadowDatabase: false, filters: NO_FILTERS };
      expect((await engine.diagnoseMigrationHistory(asked)).failedMigrationNames).toEqual(["29990101000000_next"]);
      await engine.markMigrationRolledBack({ migrationName: "29990101000000_next" });
    });
    writeFileSync(join(migrationsDir, "29990101000000_next/migration.sql"), "CREATE TABLE whole (id int);");
    expect(await applyMigrations({ databaseUrl: url, migrationsDir })).toEqual({ applied: ["29990101000000_next"] });
  });

  it("leaves a database alone that has tables of somebody else", async () => {
    const { url } = await emptyDatabase();
    await query(url, "CREATE TABLE precious (id int)");
    await expect(applyMigrations({ databaseUrl: url })).rejects.toThrow(/not empty.*precious/);
    expect(await query(url, "SELECT to_regclass('_prisma_migrations') AS found")).toEqual([{ found: null }]);
  });

  it("runs what refuses a transaction, if it is alone in its file", async () => {
    const { url } = await emptyDatabase();
    const migrationsDir = migrationsWith('CREATE INDEX CONCURRENTLY "extra_idx" ON "orders"("itemId");');
    expect(await applyMigrations({ databaseUrl: url, migrationsDir })).toEqual({
      applied: [...NAMES, "29990101000000_next"],
    });
  });
});

/** A row without what differs from run to run. Of times and logs, whether there are any: the driver words the errors. */
function comparable({ id: _id, started_at, finished_at, logs, ...row }: Record<string, unknown>) {
  return { ...row, started: started_at !== null, finished: finished_at !== null, logs: Boolean(logs) };
}

describe("together with Prisma's own schema engine", () => {
  const migrationsList = readMigrations();
  const inOrder = { editedMigrationNames: [], failedMigrationNames: [], hasMigrationsTable: true, history: null };

  it("what we have migrated has for Prisma nothing to apply and no drift", async () => {
    const { url } = await emptyDatabase();
    await applyMigrations({ databaseUrl: url });
    await withSchemaEngine(url, async (engine) => {
      const asked = { migrationsList, optInToShadowDatabase: true, filters: NO_FILTERS };
      expect(await engine.diagnoseMigrationHistory(asked)).toEqual(inOrder);
      expect(await engine.applyMigrations({ migrationsList, filters: NO_FILTERS })).toEqual({
        appliedMigrationNames: [],
      });
      // `migrate dev` would ask for a reset if the database were not what the migrations make.
      const diagnosis = await engine.devDiagnostic({ migrationsList, filters: NO_FILTERS });
      expect(diagnosis.action.tag).toBe("createMigration");
      const difference = await engine.diff({
        from: { tag: "schemaDatamodel", ...readSchema() },
        to: { tag: "migrations", ...migrationsList },
        script: true,
        exitCode: true,
        filters: NO_FILTERS,
      });
      expect(difference).toMatchObject({ exitCode: 0 });
    });
  });

  it("what Prisma has migrated is accepted by us", async () => {
    const { url } = await emptyDatabase();
    await withSchemaEngine(url, async (engine) => {
      expect(await engine.applyMigrations({ migrationsList, filters: NO_FILTERS })).toEqual({
        appliedMigrationNames: NAMES,
      });
    });
    expect(await applyMigrations({ databaseUrl: url })).toEqual({ applied: [] });
  });

  it("both leave the same rows and the same history table", async () => {
    const [ours, theirs] = await Promise.all([emptyDatabase(), emptyDatabase()]);
    await applyMigrations({ databaseUrl: ours.url });
    await withSchemaEngine(theirs.url, (engine) => engine.applyMigrations({ migrationsList, filters: NO_FILTERS }));
    expect((await rowsOf(ours.url)).map(comparable)).toEqual((await rowsOf(theirs.url)).map(comparable));
    const columns = `SELECT column_name, data_type, character_maximum_length, is_nullable, column_default
      FROM information_schema.columns WHERE table_name = '_prisma_migrations' ORDER BY ordinal_position`;
    expect(await query(ours.url, columns)).toEqual(await query(theirs.url, columns));
  });

  it("a broken migration leaves the same row behind, and the same nothing else", async () => {
    const [ours, theirs] = await Promise.all([emptyDatabase(), emptyDatabase()]);
    const migrationsDir = migrationsWith("CREATE TABLE half_done (id int);\nINSERT INTO nowhere VALUES (1);");
    await expect(applyMigrations({ databaseUrl: ours.url, migrationsDir })).rejects.toThrow(/nowhere/);
    const migration = { migrationsList: readMigrations(migrationsDir), filters: NO_FILTERS };
    const engineFails = withSchemaEngine(theirs.url, (engine) => engine.applyMigrations(migration));
    await expect(engineFails).rejects.toThrow();
    const [our, their] = [await rowsOf(ours.url), await rowsOf(theirs.url)];
    expect(our.map(comparable)).toEqual(their.map(comparable));
    expect(our.at(-1)?.logs).toBeTruthy();
    for (const { url } of [ours, theirs]) {
      expect(await query(url, "SELECT to_regclass('half_done') AS found")).toEqual([{ found: null }]);
    }
  });
});
