import { orWhenLate, pause } from "./pause.js";

/** Whether a dependency answers: a plain flag, believed down at the first failure and up at the first answer. */
export interface DependencyHealth {
  isUp(): boolean;
  /** Says that a call just failed because the dependency was away. */
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

/** Watches a dependency by asking it something small, again and again. */
export function watchDependency(options: HealthOptions): DependencyHealth {
  const listeners = new Set<(up: boolean) => void>();
  const stopping = new AbortController();
  let up = true;

  const set = (now: boolean) => {
    if (up === now) return;
    up = now;
    for (const listener of listeners) listener(up);
  };

  const watch = async () => {
    while (!stopping.signal.aborted) {
      const answering = options.probe().then(
        () => true,
        () => false,
      );
      const answered = await orWhenLate(answering, options.timeoutMs, () => false);
      if (stopping.signal.aborted) return;
      set(answered);
      await pause(up ? options.intervalMs : Math.min(options.intervalMs, 250), stopping.signal);
    }
  };
  void watch();

  return {
    isUp: () => up,
    reportFailure: () => set(false),
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    stop: () => stopping.abort(),
  };
}
