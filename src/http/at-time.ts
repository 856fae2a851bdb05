/** setTimeout counts in 31 bits: a longer delay would fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Runs `action` at `time` (milliseconds since 1970), at once where that is past. Returns what cancels it. Keeps no process alive. */
export function atTime(time: number, action: () => void): () => void {
  let timer: NodeJS.Timeout | undefined;
  const arm = () => {
    const left = time - Date.now();
    timer = left > LONGEST_TIMER_MS ? setTimeout(arm, LONGEST_TIMER_MS) : setTimeout(action, Math.max(0, left));
    timer.unref();
  };
  arm();
  return () => clearTimeout(timer);
}
