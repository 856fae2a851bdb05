/** What the tests of a connection share. */
import { expect } from "vitest";
import { SECOND } from "../../src/domain/time.js";
import { RedisUnavailableError } from "../../src/redis/errors.js";
import type { RedisLink } from "../../src/redis/link.js";

/** How long a command may take here: more than a server that works needs on a machine that has a lot to do. */
export const TIMEOUT_MS = 1 * SECOND;

/** A call that has no answer is over by then, on such a machine too. */
export const OVER_BY_MS = TIMEOUT_MS + 2 * SECOND;

/** Holds a call to failing because Redis could not be reached or could not serve. */
export function unavailable(call: Promise<unknown>): Promise<void> {
  return expect(call).rejects.toThrow(RedisUnavailableError);
}

/** Resolves when this connection has met a server once more. */
export function metAgain(link: RedisLink): Promise<void> {
  return new Promise((resolve) => {
    const stop = link.onUsable(() => {
      stop();
      resolve();
    });
  });
}

/** Milliseconds. */
export async function durationOf(work: Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work;
  return performance.now() - started;
}
