import { insertAudit } from "../db/audit.js";
import { failRequest } from "../db/compensations.js";
import { type DeadLetter, findDeadLetter, findOldDeadLetters, resolveDeadLetter } from "../db/dead-letters.js";
import { readEpoch, takeFenceShared } from "../db/fence.js";
import { inTransaction } from "../db/transaction.js";
import { conflict, notFound, SluiceError } from "../domain/errors.js";
import { drilling, failpoint } from "../lifecycle/failpoints.js";
import type { LogRarely } from "../observability/logger.js";
import { checkCommand, type DeadLetterCommand, holdDeadLetter } from "./dead-letter.js";
import { discardDeadLetter } from "./discard.js";
import { carryEvents, type RelayDeps } from "./relay.js";

export interface CompensateDeps extends RelayDeps {
  readonly rarely: LogRarely;
}

/**
 * Decides a request that was given up FAILED, and gives its stock back: on the request's row, where it meets the order writer,
 * so that one of the two wins and the other changes nothing. The buyer hears FAILED, and may reserve again. A repeat does
 * nothing more, however many run at once.
 *
 * @throws SluiceError NOT_FOUND; CONFLICT where the request was decided meanwhile: discard the letter; BAD_USER_INPUT; a
 *   database error, after which a repeat tells
 */
export async function compensateDeadLetter(deps: CompensateDeps, command: DeadLetterCommand): Promise<DeadLetter> {
  checkCommand(command);
  const { saleId, id, reason, actor } = command;
  const event = await inTransaction(deps.db, async (tx) => {
    await takeFenceShared(tx, saleId);
    const epoch = (await readEpoch(tx, saleId)) ?? 0;
    const held = await holdDeadLetter(tx, command, "COMPENSATED");
    if (held.status !== "OPEN") return null;
    const failed = await failRequest(tx, saleId, held.requestId, epoch);
    if (!failed)
      throw conflict("The request was decided meanwhile: nothing is to be given back. Discard the dead letter.");
    await resolveDeadLetter(tx, held, "COMPENSATED");
    const details = { requestId: held.requestId, deadLetter: String(id) };
    await insertAudit(tx, { saleId, actor, action: "compensateDeadLetter", reason, details });
    if (drilling) await failpoint("compensate.before_commit");
    return failed;
  });
  if (event) {
    if (drilling) await failpoint("compensate.after_commit");
    deps.metrics.compensations.inc({ outcome: "compensated" });
    try {
      await carryEvents(deps, saleId, [event]);
    } catch (error) {
      deps.rarely("warn", { saleId, err: error }, "a request was compensated, but Redis could not be told yet");
    }
  }
  const after = await findDeadLetter(deps.db, saleId, id);
  if (!after) throw notFound("There is no such dead letter.");
  return after;
}

/** Who compensates by himself, in the audit log. */
const NOBODY = "sluice";
const AT_ONCE = 100;

/**
 * Compensates dead letters that nobody has seen to for so long, and discards those whose request was decided meanwhile. The
 * caller sees to it that all dependencies have been well for as long. Safe to run on any number of workers at once.
 */
export async function compensateOld(deps: CompensateDeps, olderThanMs: number): Promise<void> {
  const old = await findOldDeadLetters(deps.db, olderThanMs, AT_ONCE);
  const failures: unknown[] = [];
  for (const { saleId, id } of old) {
    const reason = `nobody has decided for ${Math.round(olderThanMs / 1_000)} seconds`;
    const command = { saleId, id, reason, actor: NOBODY };
    try {
      await compensateDeadLetter(deps, command).catch((error: unknown) => {
        if (!(error instanceof SluiceError)) throw error;
        return discardDeadLetter(deps, command);
      });
    } catch (error) {
      // Ended by somebody else meanwhile, or its rows are locked: the others must not wait for it.
      if (!(error instanceof SluiceError)) failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}
