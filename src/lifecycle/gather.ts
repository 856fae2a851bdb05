/** Collects what many callers hand over within a few milliseconds, so that one statement or pipeline serves them all. */
export interface Gather<Item, Result> {
  /** Resolves with what `run` answered for this item. */
  add(item: Item): Promise<Result>;
  /** Items handed over and not yet answered for. */
  waiting(): number;
  /** Resolves once everything that was handed over is answered for. */
  drained(): Promise<void>;
}

export interface GatherOptions<Item, Result> {
  readonly maxItems: number;
  readonly maxWaitMs: number;
  /** runs under way at once; what comes meanwhile makes the next group larger */
  readonly maxRuns: number;
  /** Resolves when the next run may begin, with how many of the `ready` items it may have, 1 at the least. Must not reject. */
  admit?(ready: number): Promise<number>;
  /** Answers for each item, in their order. `answer` may be called before the promise resolves, to let callers go early. */
  run(items: readonly Item[], answer: (results: readonly Result[]) => void): Promise<void>;
}

interface Entry<Item, Result> {
  readonly item: Item;
  resolve(result: Result): void;
  reject(error: unknown): void;
}

export function gather<Item, Result>(options: GatherOptions<Item, Result>): Gather<Item, Result> {
  let entries: Entry<Item, Result>[] = [];
  let timer: NodeJS.Timeout | null = null;
  let runs = 0;
  /** whether a run waits to be admitted; the next one asks after it, for what it leaves */
  let asking = false;
  let waiting = 0;
  let onDrained: (() => void)[] = [];

  const start = () => {
    if (timer) clearTimeout(timer);
    timer = null;
    while (runs < options.maxRuns && entries.length > 0 && !asking) {
      runs += 1;
      if (options.admit) void askAndRun(options.admit);
      else void runGroup(take(options.maxItems));
    }
  };

  const take = (count: number) => {
    const group = entries.slice(0, count);
    entries = entries.slice(count);
    return group;
  };

  const askAndRun = async (admit: (ready: number) => Promise<number>) => {
    asking = true;
    const admitted = await admit(Math.min(entries.length, options.maxItems));
    asking = false;
    void runGroup(take(admitted));
    start();
  };

  const runGroup = async (group: readonly Entry<Item, Result>[]) => {
    let answered = false;
    try {
      await options.run(
        group.map((entry) => entry.item),
        (results) => {
          answered = true;
          waiting -= group.length;
          group.forEach((entry, at) => {
            entry.resolve(results[at] as Result);
          });
        },
      );
      if (!answered) throw new Error("A group was run without an answer.");
    } catch (error) {
      if (!answered) {
        waiting -= group.length;
        for (const entry of group) entry.reject(error);
      }
    }
    runs -= 1;
    if (entries.length > 0) start();
    if (runs === 0 && entries.length === 0) {
      const listeners = onDrained;
      onDrained = [];
      for (const listener of listeners) listener();
    }
  };

  return {
    add(item) {
      return new Promise<Result>((resolve, reject) => {
        waiting += 1;
        entries.push({ item, resolve, reject });
        if (entries.length >= options.maxItems) start();
        else timer ??= setTimeout(start, options.maxWaitMs);
      });
    },
    waiting: () => waiting,
    drained() {
      if (runs === 0 && entries.length === 0) return Promise.resolve();
      return new Promise((resolve) => onDrained.push(resolve));
    },
  };
}
