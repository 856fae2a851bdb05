import { SECOND } from "../domain/time.js";
import { pause } from "../lifecycle/pause.js";
import type { Database, Statements, Tx } from "./client.js";
import { isContention } from "./errors.js";

const ATTEMPTS = 5;
/** After so long nobody begins again: five lock timeouts in a row were longer than who waits for the answer waits. */
const RETRY_FOR_MS = 1.5 * SECOND;

/**
 * Runs `body` in one transaction, again where a deadlock or a lock timeout ended it. `body` must be free of side effects: no
 * network, no Redis. Any other error leaves it unknown whether the transaction was committed only if isDatabaseUnavailable
 * says so.
 */
export function inTransaction<Result>(db: Database, body: (tx: Tx) => Promise<Result>): Promise<Result> {
  return againAfterContention(() => db.$transaction(body));
}

/**
 * Runs one statement as a transaction of its own, for what is written thousands of times a second: one word to the server
 * and one back instead of three, and while it holds rows nobody waits for this process. Otherwise like `inTransaction`.
 *
 * With `beforeCommit` it is put between a BEGIN and a COMMIT, so that a drill has a moment at which to strike.
 */
export function inOneStatement<Result>(
  db: Database,
  statement: (tx: Statements) => Promise<Result>,
  beforeCommit: (() => Promise<void>) | null,
): Promise<Result> {
  if (!beforeCommit) return againAfterContention(() => statement(db));
  return inTransaction(db, async (tx) => {
    const result = await statement(tx);
    await beforeCommit();
    return result;
  });
}

/** Five times at the most, further and further apart, so that two who met don't meet again, and for a second and a half. */
async function againAfterContention<Result>(run: () => Promise<Result>): Promise<Result> {
  const giveUpAt = performance.now() + RETRY_FOR_MS;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await run();
    } catch (error) {
      if (attempt === ATTEMPTS || !isContention(error) || performance.now() > giveUpAt) throw error;
      await pause(10 * 2 ** attempt * (0.5 + Math.random()));
    }
  }
}
