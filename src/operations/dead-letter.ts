import type { Tx } from "../db/client.js";
import { type DeadLetter, lockDeadLetter } from "../db/dead-letters.js";
import { conflict, notFound } from "../domain/errors.js";
import { isId } from "../domain/ids.js";
import { checkReason } from "./check-input.js";

/** What is to become of a dead letter, on whose word. */
export interface DeadLetterCommand {
  readonly saleId: string;
  readonly id: bigint;
  /** why, for the audit log */
  readonly reason: string;
  /** the operator */
  readonly actor: string;
}

/** @throws SluiceError BAD_USER_INPUT, NOT_FOUND */
export function checkCommand({ saleId, reason }: DeadLetterCommand): void {
  checkReason(reason);
  if (!isId(saleId)) throw notFound("There is no such dead letter.");
}

/**
 * Holds the dead letter that a command names, its request too, until the transaction ends: open, or ended in the same way
 * before, which makes the command a repeat. @throws SluiceError NOT_FOUND, CONFLICT where it was ended in another way
 */
export async function holdDeadLetter(
  tx: Tx,
  { saleId, id }: DeadLetterCommand,
  ending: Exclude<DeadLetter["status"], "OPEN">,
): Promise<DeadLetter> {
  const letter = await lockDeadLetter(tx, saleId, id);
  if (!letter) throw notFound("There is no such dead letter.");
  if (letter.status !== "OPEN" && letter.status !== ending) {
    throw conflict(`This dead letter was ${letter.status.toLowerCase()} before.`);
  }
  return letter;
}
