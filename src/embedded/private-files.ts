/** Files of the data directory that only their owner may read, written so that a crash leaves the old text or the new, never half. */
import { randomBytes } from "node:crypto";
import { accessSync, constants, linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { StartFailure } from "./failure.js";

/** The secrets that a data directory keeps over restarts. */
export type SecretName = "postgres-password" | "redis-password" | "jwt-secret" | "webhook-secret";

/**
 * Makes the data directory. Others may pass through it (the database's own user must) but not list it.
 *
 * @throws StartFailure where it can't be made, or belongs to somebody else
 */
export function makeDataDir(dataDir: string): void {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o711 });
    accessSync(dataDir, constants.W_OK | constants.X_OK);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new StartFailure(
      `The data directory ${dataDir} can't be written to (${code}). Set SLUICE_DATA_DIR to one of your own.`,
    );
  }
}

/** The secret of this name, made at first use: 256 random bits, in a file of mode 0600. Safe to call from two processes at once. */
export function readOrCreateSecret(dataDir: string, name: SecretName): string {
  const directory = join(dataDir, "secrets");
  const path = join(directory, name);
  const known = readIfThere(path);
  if (known) return known.trim();
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const temporary = writeTemporary(path, `${randomBytes(32).toString("base64url")}\n`);
  try {
    // A link, unlike a rename, fails where another process was first; then its secret counts.
    linkSync(temporary, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    rmSync(temporary, { force: true });
  }
  return readFileSync(path, "utf8").trim();
}

/** Replaces a file in one step. */
export function writePrivateJson(path: string, value: unknown): void {
  renameSync(writeTemporary(path, `${JSON.stringify(value, null, 2)}\n`), path);
}

/** What a JSON file holds, or null where it is missing or unreadable. */
export function readJson(path: string): unknown {
  const text = readIfThere(path);
  if (text === null) return null;
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** The file's text, or null where there is none. */
export function readIfThere(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

/** Writes the text beside `path`, to be linked or renamed into place. */
export function writeTemporary(path: string, text: string): string {
  const temporary = `${path}.${process.pid}.${randomBytes(4).toString("hex")}.tmp`;
  writeFileSync(temporary, text, { mode: 0o600, flag: "wx" });
  return temporary;
}
