import { SECOND } from "../domain/time.js";
import { pause } from "../lifecycle/pause.js";
import type { Database, Tx } from "./client.js";
import { isContention } from "./errors.js";

const ATTEMPTS = 5;
/** After so long nobody begins again: five lock timeouts in a row were longer than who waits for the answer waits. */
const RETRY_FOR_MS = 1.5 * SECOND;

/**
 * Runs `body` in one transaction, again where a deadlock or a lock timeout ended it: five times at the most, further
 * and further apart, so that two who met don't meet again, and for a second and a half at the most. `body` must be free of side effects: no network, no Redis.
 * Any other error leaves it unknown whether the transaction was committed only if isDatabaseUnavailable says so.
 */
export async function inTransaction<Result>(db: Database, body: (tx: Tx) => Promise<Result>): Promise<Result> {
  const giveUpAt = performance.now() + RETRY_FOR_MS;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await db.$transaction(body);
    } catch (error) {
      if (attempt === ATTEMPTS || !isContention(error) || performance.now() > giveUpAt) throw error;
      await pause(10 * 2 ** attempt * (0.5 + Math.random()));
    }
  }
}
