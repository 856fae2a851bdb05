/**
 * Prisma's schema engine as WebAssembly: what `prisma migrate` runs, without the binary that the CLI would download.
 * The package loads its .wasm file with an `import` that Node only understands behind a flag, so we instantiate it here.
 */
import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { PrismaPg } from "@prisma/adapter-pg";
import { bindMigrationAwareSqlAdapterFactory, ColumnTypeEnum } from "@prisma/driver-adapter-utils";
import pg from "pg";

/** The root of the package. */
export const root = join(dirname(fileURLToPath(import.meta.url)), "..");

/** Nothing in our database is managed by anybody else. */
export const NO_FILTERS = { externalTables: [], externalEnums: [] };

/** Where the engine leaves the message when it panics; without it a panic ends in a TypeError about this global. */
globalThis.PRISMA_WASM_PANIC_REGISTRY = {
  set_message: (message) => process.stderr.write(`schema engine: ${message}\n`),
};

let bindings;

async function loadBindings() {
  const entry = createRequire(import.meta.url).resolve("@prisma/schema-engine-wasm/schema_engine_bg");
  const engine = await import(pathToFileURL(entry).href);
  const bytes = readFileSync(join(dirname(entry), "schema_engine_bg.wasm"));
  const { instance } = await WebAssembly.instantiate(bytes, { "./schema_engine_bg.js": engine });
  engine.__wbg_set_wasm(instance.exports);
  instance.exports.__wbindgen_start();
  return engine;
}

/**
 * Opens a schema engine on a database, hands it to `use`, and closes it with its connections. The engine connects even
 * if it only compares schemas, and replays migrations in a database of its own beside the one it is given, so the user
 * must be allowed to create one.
 */
export async function withSchemaEngine(databaseUrl, use) {
  bindings ??= loadBindings();
  const { SchemaEngine } = await bindings;
  const connection = connectionOf(databaseUrl);
  const open = new Set();
  const factory = new PrismaPg(connection);
  factory.connect = () => connect(connection, open);
  factory.connectToShadowDb = () => connectToShadow(connection, open);
  const datamodels = readSchema().files.map((file) => [file.path, file.content]);
  const engine = await SchemaEngine.new({ datamodels }, () => {}, bindMigrationAwareSqlAdapterFactory(factory));
  try {
    return await use(engine);
  } finally {
    engine.free();
    // The engine leaves connections to us; idle ones would keep the process alive for ten seconds.
    await Promise.all([...open].map((adapter) => adapter.dispose()));
  }
}

async function connect(connection, open) {
  const adapter = await new PrismaPg(connection).connect();
  // The adapter cuts a script at every semicolon, also within a function's body. The engine's binary sends a script as
  // it is, which runs it as one implicit transaction; so do we.
  const pool = adapter.underlyingDriver();
  adapter.executeScript = async (script) => {
    await pool.query(script);
  };
  readInternalChars(adapter, pool);
  open.add(adapter);
  const dispose = adapter.dispose.bind(adapter);
  adapter.dispose = async () => {
    if (open.delete(adapter)) await dispose();
  };
  return adapter;
}

/**
 * Nor does the adapter know PostgreSQL's internal type "char", of which the catalog is full that the engine reads to
 * describe a database. It is shown a text instead, and the engine told that it is a character.
 */
function readInternalChars(adapter, pool) {
  const charColumns = new WeakMap();
  const query = pool.query.bind(pool);
  pool.query = async (...call) => {
    const result = await query(...call);
    const chars = (result.fields ?? []).filter((field) => field.dataTypeID === pg.types.builtins.CHAR);
    if (chars.length > 0) charColumns.set(result.rows, new Set(chars.map((field) => result.fields.indexOf(field))));
    for (const field of chars) field.dataTypeID = pg.types.builtins.TEXT;
    return result;
  };
  const queryRaw = adapter.queryRaw.bind(adapter);
  adapter.queryRaw = async (given) => {
    const result = await queryRaw(given);
    const chars = charColumns.get(result.rows);
    const columnTypes = result.columnTypes.map((type, at) => (chars?.has(at) ? ColumnTypeEnum.Character : type));
    return { ...result, columnTypes };
  };
}

/** The adapter's own version drops the database while it is still connected to it, which PostgreSQL refuses. */
async function connectToShadow(connection, open) {
  const database = `prisma_migrate_shadow_db_${randomUUID()}`;
  await runAlone(connection, `CREATE DATABASE "${database}"`);
  const adapter = await connect({ ...connection, database }, open);
  const dispose = adapter.dispose;
  adapter.dispose = async () => {
    await dispose();
    await runAlone(connection, `DROP DATABASE IF EXISTS "${database}" WITH (FORCE)`);
  };
  return adapter;
}

async function runAlone(connection, statement) {
  const client = new pg.Client(connection);
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}

/** In parts, because `pg` prefers the database named in a connectionString to another one named beside it. */
function connectionOf(databaseUrl) {
  const url = new URL(databaseUrl);
  return {
    host: url.hostname,
    port: Number(url.port || 5432),
    user: decodeURIComponent(url.username),
    password: decodeURIComponent(url.password),
    database: url.pathname.slice(1),
  };
}

/** prisma/schema.prisma as the engine wants it. */
export function readSchema(path = join(root, "prisma/schema.prisma")) {
  return { files: [{ path, content: readFileSync(path, "utf8") }] };
}

/** The committed migrations as the engine wants them. */
export function readMigrations(baseDir = join(root, "prisma/migrations")) {
  const directories = readdirSync(baseDir, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  return {
    baseDir,
    lockfile: { path: "migration_lock.toml", content: readFileSync(join(baseDir, "migration_lock.toml"), "utf8") },
    shadowDbInitScript: "",
    migrationDirectories: directories
      .map((entry) => entry.name)
      .sort()
      .map((name) => ({
        path: name,
        migrationFile: {
          path: "migration.sql",
          content: { tag: "ok", value: readFileSync(join(baseDir, name, "migration.sql"), "utf8") },
        },
      })),
  };
}

/** The SQL that leads from the committed migrations to prisma/schema.prisma, or null when there is none. */
export async function migrationsToSchema(databaseUrl) {
  const { exitCode, stdout } = await withSchemaEngine(databaseUrl, (engine) =>
    engine.diff({
      from: { tag: "migrations", ...readMigrations() },
      to: { tag: "schemaDatamodel", ...readSchema() },
      script: true,
      exitCode: true,
      filters: NO_FILTERS,
    }),
  );
  return exitCode === 0 ? null : stdout;
}
