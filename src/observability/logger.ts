import { createHash, createHmac } from "node:crypto";
import { type Logger, pino } from "pino";

export type { Logger };

/** What is needed of a logger to tell of one request: fields, and what happened. */
export type RequestLog = Readonly<
  Record<"debug" | "info" | "warn" | "error", (fields: object, message: string) => void>
>;

/** A logger of one request. Most requests have nothing to tell: its fields are worked out with the first line. */
export function createRequestLog(log: RequestLog, fields: () => object): RequestLog {
  return new LateLog(log, fields);
}

class LateLog implements RequestLog {
  #fields: object | undefined;

  constructor(
    private readonly log: RequestLog,
    private readonly workOut: () => object,
  ) {}

  debug(fields: object, message: string): void {
    this.log.debug(this.#with(fields), message);
  }

  info(fields: object, message: string): void {
    this.log.info(this.#with(fields), message);
  }

  warn(fields: object, message: string): void {
    this.log.warn(this.#with(fields), message);
  }

  error(fields: object, message: string): void {
    this.log.error(this.#with(fields), message);
  }

  #with(fields: object): object {
    this.#fields ??= this.workOut();
    return { ...this.#fields, ...fields };
  }
}

export interface LoggerOptions {
  readonly level: string;
  /** which process speaks: api or worker */
  readonly name: string;
}

/** JSON lines on stdout. Requests are named by their id; buyers only through `maskBuyer`. */
export function createLogger(options: LoggerOptions): Logger {
  return pino({
    level: options.level,
    base: { process: options.name, pid: process.pid },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    serializers: { err: describeError },
    redact: ["*.authorization", "authorization", "headers.authorization", "*.token", "token"],
  });
}

/** What logs tell of an error. Not all it carries: ioredis hangs a command's arguments on it, Prisma a refused row's values. */
function describeError(error: unknown): object {
  if (!(error instanceof Error)) return { message: String(error) };
  const { code, cause } = error as Error & { code?: unknown };
  return {
    type: error.name,
    message: error.message,
    ...(typeof code === "string" && { code }),
    stack: error.stack,
    ...(cause instanceof Error && { cause: describeError(cause) }),
  };
}

/**
 * A buyer as logs name him: a keyed hash, so that one buyer's lines can be found by whoever holds the key, and nobody
 * can try ids against a log. `secret` is one that all processes share.
 */
export function createBuyerMask(secret: string): (buyerId: string) => string {
  const key = createHash("sha256").update(`sluice:log:${secret}`).digest();
  return (buyerId) => `b_${createHmac("sha256", key).update(buyerId).digest("base64url").slice(0, 12)}`;
}

/** Logs for paths that may fail thousands of times a second; see `logRarely`. */
export type LogRarely = (level: "warn" | "error", fields: object, message: string) => void;

/**
 * Logs each message at most once in `everyMs`, with how often it was left out since (`leftOut`): a store that is away
 * fails every call, and its lines must not bury everything else.
 */
export function logRarely(log: Logger, everyMs: number): LogRarely {
  const messages = new Map<string, { nextAt: number; leftOut: number }>();
  return (level, fields, message) => {
    const now = performance.now();
    const known = messages.get(message);
    if (known && now < known.nextAt) {
      known.leftOut += 1;
      return;
    }
    const leftOut = known?.leftOut ?? 0;
    messages.set(message, { nextAt: now + everyMs, leftOut: 0 });
    log[level]({ ...fields, ...(leftOut > 0 && { leftOut }) }, message);
  };
}
