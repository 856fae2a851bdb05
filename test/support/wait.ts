import { setTimeout as sleep } from "node:timers/promises";
import { inspect } from "node:util";

export type WaitOptions = {
  /** What is waited for, to end the sentence "waited 5000 ms for". */
  what: string;
  /** @defaultValue 10 seconds */
  timeoutMs?: number;
};

type Found<T> = Exclude<T, undefined | null | false>;

/**
 * Asks `probe` again and again until it answers with something other than undefined, null or false, and returns that.
 * A probe that throws is asked again: what is waited for may not be there yet.
 *
 * @throws Error naming `what`, and the last answer or error, when the time is over
 */
export async function waitFor<T>(
  probe: () => T | Promise<T>,
  { what, timeoutMs = 10_000 }: WaitOptions,
): Promise<Found<T>> {
  const deadline = Date.now() + timeoutMs;
  let last: unknown;
  let cause: unknown;
  for (let pauseMs = 2; ; pauseMs = Math.min(pauseMs * 2, 50)) {
    try {
      const answer = await within(probe(), deadline);
      if (answer !== undefined && answer !== null && answer !== false) return answer as Found<T>;
      last = inspect(answer);
      cause = undefined;
    } catch (error) {
      if (error !== TOO_LATE) {
        last = error instanceof Error ? error.message : inspect(error);
        cause = error;
      } else last ??= "none, the probe never came back";
    }
    if (Date.now() >= deadline) {
      throw new Error(`waited ${timeoutMs} ms for ${what}; the last answer was ${last}`, { cause });
    }
    await sleep(pauseMs);
  }
}

const TOO_LATE = Symbol("too late");

/** A probe that hangs must not make the wait hang. */
async function within<T>(answer: T | Promise<T>, deadline: number): Promise<T> {
  if (!(answer instanceof Promise)) return answer;
  const timer = new AbortController();
  const late = sleep(Math.max(0, deadline - Date.now()), undefined, { signal: timer.signal }).then(() => {
    throw TOO_LATE;
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    timer.abort();
    late.catch(() => {});
  }
}
