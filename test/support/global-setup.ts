import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { TestProject } from "vitest/node";
import { applyMigrations } from "../../src/db/migrate.js";
import { startPostgres } from "../../src/embedded/postgres.js";
import { compileSources } from "./compiled.js";
import { makeRunDir, registerProcess, TEMPLATE } from "./run-dir.js";
import { query } from "./sql.js";

declare module "vitest" {
  interface ProvidedContext {
    /** The folder of this run. */
    runDir: string;
    /** The private PostgreSQL of this run, as its superuser. */
    postgresUrl: string;
    /** The folder with our programs as JavaScript; empty while files are watched, which may change under it. */
    compiled: string;
  }
}

/** Starts one private PostgreSQL for the whole run. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const runDir = makeRunDir();
  const clearUp = startWarden(runDir);
  try {
    const server = await startPostgres({
      dataDir: join(runDir, "postgres"),
      fsync: false,
      extraArgs: ["-c", "shared_buffers=64MB", "-c", "max_wal_size=256MB"],
      onSpawn: (pid) => registerProcess(runDir, pid),
    });
    await query(server.url, `CREATE DATABASE ${TEMPLATE}`);
    const template = new URL(server.url);
    template.pathname = TEMPLATE;
    await applyMigrations({ databaseUrl: template.href });
    const compiled = project.vitest.config.watch ? "" : join(runDir, "compiled");
    if (compiled) await compileSources(compiled);
    project.provide("compiled", compiled);
    project.provide("runDir", runDir);
    project.provide("postgresUrl", server.url);
    return async () => {
      await server.stop("immediate");
      await clearUp();
    };
  } catch (error) {
    await clearUp();
    throw error;
  }
}

/** In a process group of its own, so that a Ctrl-C at the terminal ends the run but not the one that clears up after it. */
function startWarden(runDir: string): () => Promise<void> {
  const program = fileURLToPath(new URL("./warden.ts", import.meta.url));
  const tsx = pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href;
  const warden = spawn(process.execPath, ["--import", tsx, program, runDir], {
    detached: true,
    stdio: ["pipe", "ignore", "inherit"],
  });
  const gone = new Promise<void>((resolve) => warden.once("exit", () => resolve()));
  return async () => {
    warden.stdin.end();
    await gone;
  };
}
