/**
 * Redis did not answer: away, frozen, loading its data, or connected to a server that we have not met yet.
 * What was sent may or may not have been done; only a script that is safe to repeat may be sent again.
 */
export class RedisUnavailableError extends Error {
  override readonly name = "RedisUnavailableError";
}

/**
 * Replies by which a server says that it can't serve now, as opposed to a command of ours being wrong. NOSCRIPT gets as far
 * as here where the scripts were flushed twice while a call was under way: ioredis teaches them once.
 */
const SERVER_CANNOT =
  /^(NOSCRIPT|LOADING|READONLY|OOM|MISCONF|BUSY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|NOREPLICAS|UNKILLABLE)\b/;

/** Turns whatever ioredis threw into a RedisUnavailableError, or into the error itself where a command was wrong. */
export function asRedisError(error: unknown): Error {
  if (error instanceof RedisUnavailableError) return error;
  if (!(error instanceof Error)) return new Error(String(error));
  if (error.name === "ReplyError" && !SERVER_CANNOT.test(error.message)) return error;
  return new RedisUnavailableError(error.message, { cause: error });
}
