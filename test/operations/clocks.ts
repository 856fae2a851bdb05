import type { Resources } from "../../src/resources.js";
import { waitFor } from "../support/wait.js";
import type { Stores } from "./support.js";

/**
 * Resolves when what Redis has accepted up to now is older than a few milliseconds to this process, too: its idea of
 * Redis's time is never ahead and may be late, by as much as the quickest reply was.
 */
export async function untilAllIsOld(stores: Stores, process: Resources): Promise<void> {
  const [seconds, microseconds] = await stores.client.time();
  const now = Number(seconds) * 1_000 + Number(microseconds) / 1_000;
  await waitFor(() => process.redis.clock.now() > now + 5, { what: "a process to believe that time has passed" });
}
