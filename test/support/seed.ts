import { randomInt } from "node:crypto";

export type SeededRandom = {
  readonly seed: number;
  /** From 0 inclusive to 1 exclusive. */
  next(): number;
  /** An integer from `low` to `high`, both inclusive. */
  int(low: number, high: number): number;
  pick<T>(items: readonly T[]): T;
  /** A shuffled copy. */
  shuffle<T>(items: readonly T[]): T[];
};

/**
 * Random numbers that can be had again: the seed is printed, and TEST_SEED=<seed> gives the same ones.
 *
 * The generator is mulberry32 (Tommy Ettinger): 32 bits of state, good enough to choose what a test does next.
 */
export function seededRandom(name: string, seed: number = seedFromEnvironment()): SeededRandom {
  console.log(`${name}: TEST_SEED=${seed}`);
  let state = seed | 0;
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const int = (low: number, high: number) => low + Math.floor(next() * (high - low + 1));
  const pick = <T>(items: readonly T[]): T => {
    if (items.length === 0) throw new Error("nothing to pick from");
    return items[int(0, items.length - 1)] as T;
  };
  const shuffle = <T>(items: readonly T[]): T[] => {
    const copy = [...items];
    for (let last = copy.length - 1; last > 0; last -= 1) {
      const other = int(0, last);
      [copy[last], copy[other]] = [copy[other] as T, copy[last] as T];
    }
    return copy;
  };
  return { seed, next, int, pick, shuffle };
}

function seedFromEnvironment(): number {
  const given = process.env.TEST_SEED;
  if (!given) return randomInt(2 ** 31);
  const seed = Number(given);
  if (!Number.isSafeInteger(seed)) throw new Error(`TEST_SEED must be an integer, not ${given}`);
  return seed;
}
