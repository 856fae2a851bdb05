/** `npm run migrate`: applies the migrations to DATABASE_URL, or to the database of a running `npm start`. */
import { ConfigError, readRuntimeFile, readStartSettings } from "../config.js";
import { applyMigrations, MigrationError } from "../db/migrate.js";

try {
  const settings = readStartSettings();
  const databaseUrl = settings.DATABASE_URL ?? readRuntimeFile(settings.dataDir)?.databaseUrl;
  if (!databaseUrl) throw new ConfigError("Set DATABASE_URL to the database that is to be migrated. See .env.example.");
  const { applied } = await applyMigrations({ databaseUrl, log: (line) => void process.stdout.write(`${line}\n`) });
  if (applied.length === 0) process.stdout.write("The database is up to date.\n");
} catch (error) {
  process.exitCode = 1;
  const { code } = error as NodeJS.ErrnoException;
  if (error instanceof ConfigError || error instanceof MigrationError) process.stderr.write(`${error.message}\n`);
  else if (code === "ECONNREFUSED" || code === "ENOTFOUND")
    process.stderr.write("The database doesn't answer: is DATABASE_URL right, and does it run?\n");
  else throw error;
}
