/** Resolves after `ms` milliseconds, or at once when `signal` is aborted. Never rejects. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener("abort", done, { once: true });
  });
}

/**
 * The result of `work`, or that of `late` where it takes longer than `ms` milliseconds. What becomes of it afterwards is
 * nobody's business any more: a later failure is silent.
 *
 * A busy process runs its timers late, and before it reads what has arrived meanwhile: what is there already counts as in
 * time. Without that a crowd of 2,000 made an API believe that a healthy Redis was dead.
 */
export async function orWhenLate<Result, Late>(
  work: Promise<Result>,
  ms: number,
  late: () => Late | Promise<Late>,
): Promise<Result | Late> {
  let inTime = false;
  const note = () => {
    inTime = true;
  };
  work.then(note, note);
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  })
    .then(readWhatArrived)
    .then(async (): Promise<Result | Late> => (inTime ? await work : await late()));
  try {
    return await Promise.race([work, tooLate]);
  } finally {
    clearTimeout(timer);
  }
}

/** Two turns of the event loop: one reads from the sockets, the next runs what was read. */
async function readWhatArrived(): Promise<void> {
  for (let turn = 0; turn < 2; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}
