import { setTimeout as sleep } from "node:timers/promises";

export { sleep };

/**
 * Asks until there is an answer, and returns it. @throws Error naming `what` after `timeoutMs`, or what `probe` throws
 * @param everyMs how long to wait in between, in milliseconds
 */
export async function until<Answer>(
  probe: () => Promise<Answer | null> | Answer | null,
  { what, timeoutMs, everyMs = 20 }: { readonly what: string; readonly timeoutMs: number; readonly everyMs?: number },
): Promise<Answer> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const answer = await probe();
    if (answer !== null) return answer;
    if (performance.now() > deadline) throw new Error(`waited ${timeoutMs} ms for ${what}`);
    await sleep(everyMs);
  }
}
