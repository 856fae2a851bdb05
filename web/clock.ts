/** The server's time, which opens and closes sales. The visitor's own clock may be wrong by hours; it is never shown. */

/** One reading: what to add to the local monotonic time, and how far off that can be at most. */
export interface Reading {
  readonly offsetMs: number;
  readonly errorMs: number;
}

export interface ServerClock {
  /** Milliseconds since 1970 by the server, or null as long as it was never asked with success. */
  now(): number | null;
  /** Asks the server again. False where it didn't answer. */
  measure(): Promise<boolean>;
}

const READINGS = 3;

/**
 * @param readServerTime asks the server; null where it didn't answer
 * @param localMs monotonic: a step of the local clock must change nothing
 */
export function createServerClock(
  readServerTime: () => Promise<number | null>,
  localMs: () => number = () => performance.now(),
): ServerClock {
  let reading: Reading | null = null;
  return {
    now: () => (reading === null ? null : localMs() + reading.offsetMs),
    async measure() {
      let answered = false;
      for (let times = 0; times < READINGS; times += 1) {
        const sentMs = localMs();
        const serverMs = await readServerTime();
        if (serverMs === null) return answered;
        answered = true;
        reading = chooseReading(reading, readingOf(sentMs, localMs(), serverMs));
      }
      return answered;
    },
  };
}

/** The server read its clock somewhere between sending and receiving: half of that time ago, give or take the other half. */
export function readingOf(sentMs: number, receivedMs: number, serverMs: number): Reading {
  const halfMs = (receivedMs - sentMs) / 2;
  return { offsetMs: serverMs - sentMs - halfMs, errorMs: halfMs };
}

/** The more exact of two readings, as long as both can be true; else the new one: the device slept, or a clock was set. */
export function chooseReading(known: Reading | null, next: Reading): Reading {
  if (known === null) return next;
  const agree = Math.abs(known.offsetMs - next.offsetMs) <= known.errorMs + next.errorMs;
  return agree && known.errorMs <= next.errorMs ? known : next;
}

/**
 * Tells of each look whether the local clocks drifted apart since the last one: monotonic time may stand still while a
 * device sleeps.
 */
export function createSleepDetector(): (localMs: number, wallMs: number) => boolean {
  let lastMs: number | null = null;
  return (localMs, wallMs) => {
    const apartMs = wallMs - localMs;
    const slept = lastMs !== null && Math.abs(apartMs - lastMs) > 1_500;
    lastMs = apartMs;
    return slept;
  };
}
