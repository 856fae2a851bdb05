import { createHash, randomFillSync } from "node:crypto";

const ID = /^[A-Za-z0-9_-]{1,64}$/;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** Whether the text can be an id of ours: an alphabet that no store folds, pads or mangles. */
export function isId(text: string): boolean {
  return ID.test(text);
}

/** A new random id of `length` letters and digits (12 of them: 71 bits). Short, because every Redis key of a sale carries it. */
export function newId(length = 12): string {
  let id = "";
  while (id.length < length) {
    if (used === RANDOM.length) {
      randomFillSync(RANDOM);
      used = 0;
    }
    // Of the 256 bytes the last eight would make some letters likelier than others.
    const byte = RANDOM[used++] as number;
    if (byte < 4 * BASE62.length) id += BASE62[byte % BASE62.length];
  }
  return id;
}

/** Random bytes in store: every request is named, and asking the system for a few bytes takes longer than for a thousand. */
const RANDOM = new Uint8Array(4_096);
let used = RANDOM.length;

/**
 * The buyer's id in every store: the token's subject where that is in our alphabet, else `h_` and the base64url of its
 * SHA-256, so that case twins, trailing spaces, accents or emoji stay different buyers.
 */
export function buyerIdOf(subject: string): string {
  // A subject that looks like one of our hashes is hashed too: nobody can name himself into another's identity.
  if (isId(subject) && !subject.startsWith("h_")) return subject;
  // UTF-8 folds every lone surrogate into one replacement character: such texts are hashed as they are in memory.
  const encoding = subject.isWellFormed() ? "utf8" : "utf16le";
  return `h_${createHash("sha256").update(subject, encoding).digest("base64url")}`;
}

/** The lower-cased UUID, or null where the text is none. */
export function parseUuid(text: string): string | null {
  return UUID.test(text) ? text.toLowerCase() : null;
}

/** Whether the text is a requestId as we keep it: any UUID in lower case, of no particular version. */
export function isRequestId(text: string): boolean {
  return parseUuid(text) === text;
}

/** A request as the rest of the world names it; also its order's id. */
export function orderIdOf(saleId: string, requestId: string): string {
  return `${saleId}.${requestId}`;
}

/** The two parts of an order's id, or null where it can't be one of ours. */
export function parseOrderId(orderId: string): { saleId: string; requestId: string } | null {
  const dot = orderId.indexOf(".");
  if (dot < 0) return null;
  const saleId = orderId.slice(0, dot);
  const requestId = parseUuid(orderId.slice(dot + 1));
  return isId(saleId) && requestId ? { saleId, requestId } : null;
}
