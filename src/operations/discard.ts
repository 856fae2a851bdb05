import { insertAudit } from "../db/audit.js";
import { type DeadLetter, findDeadLetter, isDecided, resolveDeadLetter } from "../db/dead-letters.js";
import { findDecided } from "../db/orders.js";
import { inTransaction } from "../db/transaction.js";
import { conflict, notFound } from "../domain/errors.js";
import { type CarryDeps, carryDecisions } from "./carry.js";
import { checkCommand, type DeadLetterCommand, holdDeadLetter } from "./dead-letter.js";

export type DiscardDeps = CarryDeps;

/**
 * Ends a dead letter whose request was decided meanwhile, and tells Redis what it came to. An undecided one holds stock and a buyer who waits: it must be
 * replayed or compensated. A repeat does nothing more.
 *
 * @throws SluiceError NOT_FOUND, CONFLICT (undecided, or ended in another way), BAD_USER_INPUT; a database error
 */
export async function discardDeadLetter(deps: DiscardDeps, command: DeadLetterCommand): Promise<DeadLetter> {
  checkCommand(command);
  const { saleId, id, reason, actor } = command;
  const letter = await inTransaction(deps.db, async (tx) => {
    const held = await holdDeadLetter(tx, command, "DISCARDED");
    if (held.status !== "OPEN") return held;
    if (!(await isDecided(tx, held))) throw conflict("The request is undecided: replay or compensate it.");
    await resolveDeadLetter(tx, held, "DISCARDED");
    const details = { requestId: held.requestId, deadLetter: String(id) };
    await insertAudit(tx, { saleId, actor, action: "discardDeadLetter", reason, details });
    return held;
  });
  // Out of the line, it is nothing that the forwarder looks at: whoever decided it may have died before he told Redis.
  const decided = await findDecided(deps.db, saleId, [letter.requestId]);
  await carryDecisions(deps, saleId, [...decided.values()]);
  const after = await findDeadLetter(deps.db, saleId, id);
  if (!after) throw notFound("There is no such dead letter.");
  return after;
}
