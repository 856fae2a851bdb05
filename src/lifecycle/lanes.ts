import { orWhenLate } from "./pause.js";

/** Work of many keys, a few at once of each: whoever waits for something of one key is not in the way of the others. */
export interface Lanes {
  /**
   * Runs `work` when one of the key's lanes is free. @throws what `work` throws; the error of `late` where no lane got free in
   * time, and `work` was not begun
   */
  run<Result>(key: string, work: () => Promise<Result>): Promise<Result>;
}

export interface LanesOptions {
  readonly perKey: number;
  readonly waitMs: number;
  late(): Error;
}

export function createLanes({ perKey, waitMs, late }: LanesOptions): Lanes {
  const keys = new Map<string, { busy: number; readonly waiting: (() => void)[] }>();

  const enter = async (key: string): Promise<void> => {
    const lanes = keys.get(key) ?? { busy: 0, waiting: [] };
    keys.set(key, lanes);
    if (lanes.busy < perKey) {
      lanes.busy += 1;
      return;
    }
    let admit = () => {};
    const admitted = new Promise<void>((resolve) => {
      admit = resolve;
      lanes.waiting.push(resolve);
    });
    await orWhenLate(admitted, waitMs, () => {
      const at = lanes.waiting.indexOf(admit);
      // Admitted in this very moment: it has a lane.
      if (at < 0) return;
      lanes.waiting.splice(at, 1);
      throw late();
    });
  };

  const leave = (key: string): void => {
    const lanes = keys.get(key);
    const next = lanes?.waiting.shift();
    // A lane goes from one to the next, so that nobody who comes just then takes it.
    if (next) next();
    else if (lanes) {
      lanes.busy -= 1;
      if (lanes.busy === 0) keys.delete(key);
    }
  };

  return {
    async run(key, work) {
      await enter(key);
      try {
        return await work();
      } finally {
        leave(key);
      }
    },
  };
}
