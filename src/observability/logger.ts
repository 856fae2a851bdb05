import { createHash, createHmac } from "node:crypto";
import { type Logger, pino } from "pino";

export type { Logger };

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
    redact: ["*.authorization", "authorization", "headers.authorization", "*.token", "token"],
  });
}

/**
 * A buyer as logs name him: a keyed hash, so that one buyer's lines can be found by whoever holds the key, and nobody
 * can try ids against a log. `secret` is one that all processes share.
 */
export function createBuyerMask(secret: string): (buyerId: string) => string {
  const key = createHash("sha256").update(`sluice:log:${secret}`).digest();
  return (buyerId) => `b_${createHmac("sha256", key).update(buyerId).digest("base64url").slice(0, 12)}`;
}

/** Calls `log` at most once in `everyMs`, telling how many it left out: for hot paths. */
export function sampled(everyMs: number, log: (leftOut: number) => void): () => void {
  let nextAt = 0;
  let leftOut = 0;
  return () => {
    const now = performance.now();
    if (now < nextAt) {
      leftOut += 1;
      return;
    }
    nextAt = now + everyMs;
    log(leftOut);
    leftOut = 0;
  };
}
