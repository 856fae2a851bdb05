/** The servers that `npm start` was given instead of starting its own: looked at before anything is started on them. */
import { orWhenLate } from "../lifecycle/pause.js";
import { findUnfitness, unfitBecause } from "../redis/fitness.js";
import { connectRedis } from "../redis/link.js";
import { StartFailure } from "./failure.js";

const WAIT_MS = 2_000;

/** @throws StartFailure where Redis doesn't answer, or must not be used; one line that says what to do */
export async function checkGivenRedis(url: string, production: boolean): Promise<void> {
  let latest: Error | null = null;
  const link = connectRedis({
    url,
    name: "start",
    commandTimeoutMs: WAIT_MS,
    unfitBecause: (facts) => unfitBecause(facts, production),
    onError: (error) => {
      latest = error;
    },
  });
  try {
    const unfit = await orWhenLate(findUnfitness(link, WAIT_MS), 2 * WAIT_MS, () => null);
    if (unfit) throw new StartFailure(unfit);
    if (link.isUsable()) return;
    const reason = (latest as Error | null)?.message || "no answer";
    throw new StartFailure(`Redis can't be used: ${reason}. Is REDIS_URL right, and does the server run?`);
  } finally {
    await link.close();
  }
}

/** Where a server is, without the password that its URL may hold. */
export function placeOf(url: string): string {
  const { hostname, port, pathname } = new URL(url);
  return `${hostname}${port && `:${port}`}${pathname === "/" ? "" : pathname}`;
}
