import type { RunningSluice } from "./running-sluice.js";

/** How somebody behaves who wants one unit. */
export type Habit =
  | "asks_once"
  | "repeats_at_once"
  | "repeats_later"
  | "sends_two_requests"
  | "disconnects_and_returns"
  | "disconnects"
  | "follows";

export interface Buyer {
  readonly id: string;
  readonly token: string;
  readonly habit: Habit;
}

/** Of a hundred buyers, how many behave like this; the rest asks once. */
const OF_A_HUNDRED: readonly [Habit, number][] = [
  ["repeats_at_once", 10],
  ["repeats_later", 10],
  ["sends_two_requests", 5],
  ["disconnects_and_returns", 1],
  ["disconnects", 1],
];
const FOLLOWERS_AT_MOST = 36;
/** With every third of the first in line following, most of those who follow have something to follow. */
const EVERY = 3;

/** The crowd in the order in which it comes, every buyer with a token of his own. */
export async function gatherCrowd(sluice: RunningSluice, run: string, size: number, units: number): Promise<Buyer[]> {
  const followers = Math.min(FOLLOWERS_AT_MOST, Math.ceil(units / EVERY), Math.ceil(size / 10));
  const habits = OF_A_HUNDRED.flatMap(([habit, count]) => Array<Habit>(count).fill(habit));
  return Promise.all(
    Array.from({ length: size }, async (_, n): Promise<Buyer> => {
      const id = `demo-${run}-${n}`;
      const follows = n % EVERY === 0 && n / EVERY < followers;
      // 37 and 100 have no common divisor: every habit comes once a hundred, and never all of a kind in a row.
      const habit = follows ? "follows" : (habits[(n * 37) % 100] ?? "asks_once");
      return { id, token: await sluice.token("buyer", id), habit };
    }),
  );
}

/** How many buyers have each habit. */
export function countHabits(crowd: readonly Buyer[]): Record<Habit, number> {
  const counts: Record<Habit, number> = {
    asks_once: 0,
    repeats_at_once: 0,
    repeats_later: 0,
    sends_two_requests: 0,
    disconnects_and_returns: 0,
    disconnects: 0,
    follows: 0,
  };
  for (const { habit } of crowd) counts[habit] += 1;
  return counts;
}
