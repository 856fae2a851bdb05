/** `npm run reset`: throws away the embedded databases, secrets and logs of `npm start`. An external DATABASE_URL or REDIS_URL is not touched. */
import { existsSync, readdirSync, rmdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { ConfigError, readStartSettings } from "../config.js";
import { StartFailure } from "../embedded/failure.js";
import { takeInstanceLock } from "../embedded/instance-lock.js";
import { endOrphans } from "../embedded/orphans.js";

/** Only what we have made: SLUICE_DATA_DIR may be set to a directory with other things in it. */
const ours =
  /^(postgres|postgres\.new-[\w.]+|redis|logs|page|secrets|(runtime|processes|demo-sale)\.json|[\w.-]+\.tmp|instance\.lock\.\d+\.stale)$/;

try {
  if (process.argv.length > 2)
    throw new ConfigError("Usage: npm run reset. It takes no arguments, and asks no questions.");
  const { dataDir } = readStartSettings();
  const hadData = existsSync(dataDir) && readdirSync(dataDir).some((name) => ours.test(name));
  const lock = await takeInstanceLock(dataDir, { purpose: "A reset of Sluice" });
  try {
    await endOrphans(dataDir, (line) => void process.stdout.write(`${line}\n`));
    for (const name of readdirSync(dataDir)) {
      if (ours.test(name)) rmSync(join(dataDir, name), { recursive: true, force: true });
    }
  } finally {
    lock.release();
  }
  removeIfEmpty(dataDir);
  const cleared = `${dataDir} is cleared. The next npm start begins anew.`;
  process.stdout.write(`${hadData ? cleared : `There was nothing in ${dataDir}.`}\n`);
} catch (error) {
  if (!(error instanceof ConfigError || error instanceof StartFailure)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}

function removeIfEmpty(directory: string): void {
  try {
    rmdirSync(directory);
  } catch {
    // something else is in it
  }
}
