/** The constraint violations, deadlocks and absences of the database, under all the names that Prisma gives them. */

/** What the driver said underneath, where it said something. */
interface DriverCause {
  readonly kind?: string;
  readonly originalCode?: string;
  readonly originalMessage?: string;
}

/** serialization failure, deadlock, lock not available */
const CONTENTION_STATES = new Set(["40001", "40P01", "55P03"]);
const CONTENTION_CODES = new Set(["P2034", "P2039"]);

/**
 * statement timeout (the server is too slow), shutdowns, idle in transaction, no room for a connection or on the disk,
 * read-only (a standby, a full disk, an operator's switch), closed to connections
 */
const UNAVAILABLE_STATES = /^(57014|57P0.|25P0[34]|25006|55000|08...|53...|58...|XX00.)$/;
/** not reachable, timed out, closed, pool or transaction timeout */
const UNAVAILABLE_CODES = new Set(["P1001", "P1002", "P1008", "P1017", "P2024", "P2028", "P2037"]);
const UNAVAILABLE_KINDS = new Set(["DatabaseNotReachable", "ConnectionClosed", "SocketTimeout", "TooManyConnections"]);
/** What the driver says without any code. Not every plain Error: a bug of ours must not look like an outage. */
const CONNECTION_TEXT = /connection|not queryable|timeout|after calling end/i;
const SOCKET_CODES = new Set(["ECONNREFUSED", "ECONNRESET", "EPIPE", "ETIMEDOUT", "EHOSTUNREACH", "ENETUNREACH"]);

/** Others were in the way: the same transaction may be tried again at once. */
export function isContention(error: unknown): boolean {
  return CONTENTION_CODES.has(codeOf(error)) || CONTENTION_STATES.has(stateOf(error));
}

/**
 * The database is away, or too slow to answer: no fault of what was asked. Whether a COMMIT was done is not known then;
 * a lost reply to it comes as the driver's bare error, or as a plain Error without any code, while the row is there.
 */
export function isDatabaseUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = codeOf(error);
  const cause = causeOf(error);
  if (UNAVAILABLE_CODES.has(code) || SOCKET_CODES.has(code)) return true;
  if (cause?.kind && UNAVAILABLE_KINDS.has(cause.kind)) return true;
  if (cause?.originalCode) return UNAVAILABLE_STATES.test(cause.originalCode);
  return code === "" && error.constructor === Error && CONNECTION_TEXT.test(error.message);
}

/** What may be said of an error in a row or a log: the server's own words where there are any, never a statement's values. */
export function describeDatabaseError(error: unknown): string {
  const cause = causeOf(error);
  if (cause?.originalMessage) return `${cause.originalCode ?? cause.kind ?? "error"}: ${cause.originalMessage}`;
  return error instanceof Error ? error.message.trim().split("\n").at(-1)?.trim() || error.name : String(error);
}

function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === "string" ? code : "";
}

function causeOf(error: unknown): DriverCause | undefined {
  const known = error as {
    name?: unknown;
    cause?: DriverCause;
    meta?: { driverAdapterError?: { cause?: DriverCause } };
  };
  // Of a query Prisma wraps what the driver said; of BEGIN and COMMIT it passes that on as it is.
  return known?.name === "DriverAdapterError" ? known.cause : known?.meta?.driverAdapterError?.cause;
}

function stateOf(error: unknown): string {
  return causeOf(error)?.originalCode ?? "";
}
