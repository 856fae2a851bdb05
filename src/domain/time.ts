/** Time constants in milliseconds: write `30 * SECOND`, never `30000`. */
export const SECOND = 1_000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

/** How long after closesAt a sale's requests are remembered in Redis, and a closed sale may still be loaded. */
export const REMEMBERED_AFTER_CLOSE_MS = 7 * DAY;

/** A wait of `min` to `max` milliseconds, so that those who were refused together don't come back together. */
export function jitteredMs(min: number, max: number): number {
  return Math.round(min + Math.random() * (max - min));
}
