/** A private PostgreSQL for the moment. Run with `node --import tsx`: it is the one of src/embedded. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startPostgres } from "../src/embedded/postgres.ts";

/** Hands the URL of an empty database to `use`; nothing of it is left afterwards. */
export async function withScratchDatabase(use) {
  const dataDir = mkdtempSync(join(tmpdir(), "sluice-scratch-"));
  try {
    const server = await startPostgres({ dataDir, fsync: false });
    try {
      return await use(server.url);
    } finally {
      await server.stop();
    }
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
}
