import { jitteredMs, SECOND } from "./time.js";

/** Stable codes of what clients get as GraphQL errors. Answers to `reserve` are data and never among them. */
export const ERROR_CODES = [
  "UNAUTHENTICATED",
  "FORBIDDEN",
  "BAD_USER_INPUT",
  "NOT_FOUND",
  "CONFLICT",
  "RATE_LIMITED",
  "OVERLOADED",
  "SERVICE_UNAVAILABLE",
  "INTERNAL_SERVER_ERROR",
] as const;
export type ErrorCode = (typeof ERROR_CODES)[number];

/** An error whose message is meant for the client. Every other error is masked at the edge. */
export class SluiceError extends Error {
  override readonly name = "SluiceError";

  constructor(
    readonly code: ErrorCode,
    message: string,
    /** When trying again makes sense, in milliseconds. */
    readonly retryAfterMs?: number,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** A dependency is away or not loaded: nothing was decided, and the same call may be sent again. */
export function serviceUnavailable(message: string, cause?: unknown): SluiceError {
  return new SluiceError("SERVICE_UNAVAILABLE", message, jitteredMs(1 * SECOND, 3 * SECOND), { cause });
}

export function badUserInput(message: string): SluiceError {
  return new SluiceError("BAD_USER_INPUT", message);
}

export function notFound(message: string): SluiceError {
  return new SluiceError("NOT_FOUND", message);
}

export function conflict(message: string): SluiceError {
  return new SluiceError("CONFLICT", message);
}
