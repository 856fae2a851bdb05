/** Pauses that end early when there is a reason to try again at once: back online, back on screen, connected again. */
export interface Waits {
  /** Resolves after `ms`, or earlier with `wake`. */
  pause(ms: number): Promise<void>;
  /** Ends all pauses. */
  wake(): void;
}

export function createWaits(): Waits {
  const pausing = new Set<() => void>();
  return {
    pause: (ms) =>
      new Promise((resolve) => {
        const end = () => {
          clearTimeout(timer);
          pausing.delete(end);
          resolve();
        };
        const timer = setTimeout(end, ms);
        pausing.add(end);
      }),
    wake() {
      for (const end of [...pausing]) end();
    },
  };
}

const FIRST_MS = 500;
const LONGEST_MS = 8_000;

/**
 * How long to wait before trying for the `attempt`th time (from 0) again: doubling, up to 8 s, and a random part of it, so
 * that a crowd that was cut off together doesn't come back together.
 *
 * @param random from 0 to 1
 */
export function backoffMs(attempt: number, random: number): number {
  const fullMs = Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(attempt, 10));
  return Math.round(fullMs * (0.5 + random / 2));
}
