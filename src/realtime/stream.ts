/** What a producer may do with a stream. */
export interface StreamControls<Value> {
  /** Hands a value to whoever reads. */
  push(value: Value): void;
  /** Ends the stream after what was pushed. */
  finish(): void;
  /** Ends it with an error. */
  fail(error: unknown): void;
}

/**
 * An async iterator fed from outside, whose `return` works at once, also while a `next` waits: an async generator would
 * hold its listeners until the next event, which may never come.
 *
 * `start` is called at the first `next`, and what it returns is called once when the stream is over, however it ends.
 * Only the latest unread value is kept: every value here is a whole state that replaces the ones before it.
 */
export function createStream<Value>(
  start: (controls: StreamControls<Value>) => Promise<() => void> | (() => void),
): AsyncIterableIterator<Value> {
  let latest: { value: Value } | null = null;
  let ending: { error: unknown } | "finished" | null = null;
  const readers: { resolve(result: IteratorResult<Value>): void; reject(error: unknown): void }[] = [];
  let stop: Promise<() => void> | null = null;
  let closed = false;

  const close = () => {
    if (closed) return;
    closed = true;
    // A start that failed has told the reader; there is nothing to stop.
    stop?.then((stopNow) => stopNow()).catch(() => {});
  };
  const settle = () => {
    while (latest || ending) {
      const reader = readers.shift();
      if (!reader) return;
      if (latest) {
        const { value } = latest;
        latest = null;
        reader.resolve({ done: false, value });
        continue;
      }
      close();
      if (ending === "finished") {
        reader.resolve({ done: true, value: undefined });
      } else {
        const error = ending?.error;
        ending = "finished";
        reader.reject(error);
      }
    }
  };
  const controls: StreamControls<Value> = {
    push(value) {
      if (ending) return;
      latest = { value };
      settle();
    },
    finish() {
      ending ??= "finished";
      settle();
    },
    fail(error) {
      ending ??= { error };
      settle();
    },
  };

  return {
    next() {
      if (!stop && !ending) {
        stop = Promise.resolve().then(() => start(controls));
        stop.catch(controls.fail);
      }
      return new Promise((resolve, reject) => {
        readers.push({ resolve, reject });
        settle();
      });
    },
    return() {
      ending ??= "finished";
      latest = null;
      settle();
      close();
      return Promise.resolve({ done: true, value: undefined });
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}
