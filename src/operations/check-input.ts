import { badUserInput } from "../domain/errors.js";

const REFERENCE = /^[\x21-\x7e]{1,255}$/;
const REASON_AT_MOST = 500;

/** Whether a text can be the name that a payment provider gave to something, in an alphabet that no store folds. */
export function isReference(text: string): boolean {
  return REFERENCE.test(text);
}

/** A name that a payment provider gave to something, in an alphabet that no store folds. @throws SluiceError BAD_USER_INPUT */
export function checkReference(field: string, reference: string): void {
  if (!isReference(reference)) throw badUserInput(`${field} must have 1 to 255 visible ASCII characters`);
}

/** A reason in words, for the audit log, as every store keeps it. @throws SluiceError BAD_USER_INPUT */
export function checkReason(reason: string | undefined): void {
  const usable = reason !== undefined && reason.trim() !== "" && reason.length <= REASON_AT_MOST;
  if (!usable || reason.includes("\0") || !reason.isWellFormed()) {
    throw badUserInput(`reason must have 1 to ${REASON_AT_MOST} characters`);
  }
}
