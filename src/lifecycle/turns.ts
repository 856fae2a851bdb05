/** For so long new work begins in a turn, in milliseconds. */
const TURN_MS = 2;

/**
 * Lets work begin a little at a time, first come, first served, with a look at all sockets in between.
 *
 * Left alone, Node begins everything that has arrived in one turn of its event loop. With 256 requests of a crowd a turn
 * took up to 0.8 s here, and each of the replies that a transaction waits for was read one turn later: nothing accepted
 * became durable in time, every answer was PENDING. In small turns a reply is read within milliseconds, and the same work
 * is done in the same time.
 */
export function takeTurns(): () => Promise<void> {
  let waiting: (() => void)[] = [];
  let next = 0;
  let coming = false;
  let until = 0;

  const turn = () => {
    until = performance.now() + TURN_MS;
    beginOne();
  };

  const beginOne = () => {
    const begin = waiting[next];
    if (!begin) {
      waiting = [];
      next = 0;
      coming = false;
      return;
    }
    if (performance.now() >= until) {
      waiting = waiting.slice(next);
      next = 0;
      // What is set now runs in the next turn, after the sockets were read.
      setImmediate(turn);
      return;
    }
    next += 1;
    begin();
    // After what has begun has gone as far as it can without waiting: only then is it known what it took.
    queueMicrotask(() => process.nextTick(beginOne));
  };

  return () =>
    new Promise((begin) => {
      waiting.push(begin);
      if (!coming) setImmediate(turn);
      coming = true;
    });
}
