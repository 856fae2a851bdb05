/** How much may be done a second, whoever it is for. */
export interface Ceiling {
  /**
   * Resolves with how many of `wanted` may be done now: 1 at the least, and no more than a twentieth of a second's. Who asks
   * first is served first, so that nobody who asks for much is served more often than who asks for little.
   */
  take(wanted: number): Promise<number>;
}

/** The ceiling is kept over so long: the most that is done at once, and the longest that one makes the next one wait. */
const TURN_MS = 50;

/** A token bucket that holds a twentieth of a second's tokens, one at the least, shared by all who take from it. */
export function createCeiling(perSecond: number): Ceiling {
  const atOnce = Math.max(1, Math.floor((perSecond * TURN_MS) / 1_000));
  const waiting: { readonly wanted: number; resolve(granted: number): void }[] = [];
  let tokens = atOnce;
  let filledAt = performance.now();
  let timer: NodeJS.Timeout | null = null;

  const serve = () => {
    timer = null;
    const now = performance.now();
    tokens = Math.min(atOnce, tokens + ((now - filledAt) * perSecond) / 1_000);
    filledAt = now;
    while (tokens >= 1) {
      const next = waiting.shift();
      if (!next) return;
      const granted = Math.min(next.wanted, Math.floor(tokens));
      tokens -= granted;
      next.resolve(granted);
    }
    // For a whole turn's where so many are wanted: otherwise each batch would be as small as a timer is fine.
    const wanted = Math.min(atOnce, waiting[0]?.wanted ?? 0);
    if (wanted > 0) timer = setTimeout(serve, Math.ceil(((wanted - tokens) * 1_000) / perSecond));
  };

  return {
    take: (wanted) =>
      new Promise((resolve) => {
        waiting.push({ wanted, resolve });
        if (!timer) serve();
      }),
  };
}
