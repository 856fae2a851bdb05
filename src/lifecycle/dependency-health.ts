import { orWhenLate, pause } from "./pause.js";

/** Whether a dependency answers: a plain flag, down until the first answer. */
export interface DependencyHealth {
  isUp(): boolean;
  /** Says that a call has just failed for want of an answer: it is asked at once, instead of at the next turn. */
  reportFailure(): void;
  /** Calls back at every change. Returns what takes it back. */
  onChange(listener: (up: boolean) => void): () => void;
  stop(): void;
}

export interface HealthOptions {
  /** Rejects while the dependency is away. */
  probe(): Promise<unknown>;
  readonly intervalMs: number;
  /** an answer that takes longer counts as none */
  readonly timeoutMs: number;
}

/** Whether a probe answered; one that throws instead of rejecting must not end the watch. */
async function ask(probe: () => Promise<unknown>): Promise<boolean> {
  try {
    await probe();
    return true;
  } catch {
    return false;
  }
}

/** Watches a dependency by asking it something small, again and again. */
export function watchDependency(options: HealthOptions): DependencyHealth {
  const listeners = new Set<(up: boolean) => void>();
  const stopping = new AbortController();
  let wake = new AbortController();
  let up: boolean | null = null;

  const set = (now: boolean) => {
    if (up === now) return;
    up = now;
    for (const listener of listeners) listener(now);
  };

  const watch = async () => {
    while (!stopping.signal.aborted) {
      const answered = await orWhenLate(ask(options.probe), options.timeoutMs, () => false);
      if (stopping.signal.aborted) return;
      set(answered);
      wake = new AbortController();
      await pause(answered ? options.intervalMs : Math.min(options.intervalMs, 250), wake.signal);
    }
  };
  void watch();

  return {
    isUp: () => up === true,
    // While it is down it is asked often enough anyway.
    reportFailure: () => up && wake.abort(),
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    stop() {
      stopping.abort();
      wake.abort();
    },
  };
}
