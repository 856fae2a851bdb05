import { insertAudit } from "../db/audit.js";
import { type DeadLetter, findDeadLetter, makeDueAnew, resolveDeadLetter } from "../db/dead-letters.js";
import { noteRequeued } from "../db/due-requests.js";
import { findDecided } from "../db/orders.js";
import { inTransaction } from "../db/transaction.js";
import { notFound } from "../domain/errors.js";
import { drilling, failpoint } from "../lifecycle/failpoints.js";
import type { OrderQueues } from "../queue/queues.js";
import { RedisUnavailableError } from "../redis/errors.js";
import { type BuryDeps, park } from "./bury.js";
import { type CarryDeps, carryDecisions } from "./carry.js";
import { checkCommand, type DeadLetterCommand, holdDeadLetter } from "./dead-letter.js";

export interface ReplayDeps extends BuryDeps, CarryDeps {
  readonly queues: OrderQueues;
}

/**
 * Has a request that was given up tried again, as if for the first time: back in the line where it stood, its job added anew
 * whatever BullMQ remembers of it. One that was decided meanwhile has nothing to be tried, and Redis is told of it. Where
 * Redis is away the forwarder does the rest. A repeat does nothing more.
 *
 * @throws SluiceError NOT_FOUND, CONFLICT, BAD_USER_INPUT; a database error, after which a repeat tells
 */
export async function replayDeadLetter(deps: ReplayDeps, command: DeadLetterCommand): Promise<DeadLetter> {
  checkCommand(command);
  const { saleId, id, reason, actor } = command;
  const letter = await inTransaction(deps.db, async (tx) => {
    const held = await holdDeadLetter(tx, command, "REPLAYED");
    if (held.status === "OPEN") {
      await makeDueAnew(tx, saleId, held.requestId);
      await resolveDeadLetter(tx, held, "REPLAYED");
      const details = { requestId: held.requestId, deadLetter: String(id) };
      await insertAudit(tx, { saleId, actor, action: "replayDeadLetter", reason, details });
    }
    return held;
  });
  if (letter.status === "OPEN") await tryAgain(deps, saleId, letter.requestId);
  const after = await findDeadLetter(deps.db, saleId, id);
  if (!after) throw notFound("There is no such dead letter.");
  return after;
}

async function tryAgain(deps: ReplayDeps, saleId: string, requestId: string): Promise<void> {
  if (drilling) await failpoint("replay.after_commit");
  try {
    const decided = await findDecided(deps.db, saleId, [requestId]);
    if (decided.size > 0) return await carryDecisions(deps, saleId, [...decided.values()]);
    await park(deps, saleId, [requestId], "in");
    // BullMQ ignores an add whose id it remembers as finished.
    await deps.queues.remove(saleId, [requestId]);
    if (drilling) await failpoint("replay.after_remove");
    await deps.queues.add(saleId, [requestId]);
    await noteRequeued(deps.db, saleId, [{ requestId, attempts: 0, lostByLoad: true }]);
  } catch (error) {
    if (!(error instanceof RedisUnavailableError)) throw error;
    deps.rarely("warn", { saleId, requestId, err: error }, "a replayed request waits for the forwarder");
  }
}
