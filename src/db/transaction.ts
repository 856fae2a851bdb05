import { pause } from "../lifecycle/pause.js";
import type { Database, Tx } from "./client.js";
import { isContention } from "./errors.js";

const ATTEMPTS = 5;

/**
 * Runs `body` in one transaction, again where a deadlock or a lock timeout ended it: five times at the most, further
 * and further apart, so that two who met don't meet again. `body` must be free of side effects: no network, no Redis.
 * Any other error leaves it unknown whether the transaction was committed only if isDatabaseUnavailable says so.
 */
export async function inTransaction<Result>(db: Database, body: (tx: Tx) => Promise<Result>): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await db.$transaction(body);
    } catch (error) {
      if (attempt === ATTEMPTS || !isContention(error)) throw error;
      await pause(10 * 2 ** attempt * (0.5 + Math.random()));
    }
  }
}
