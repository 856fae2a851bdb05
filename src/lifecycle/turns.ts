/** So many begin in a turn: about two milliseconds of work for a GraphQL request. */
const BEGIN_IN_A_TURN = 4;

/**
 * Lets work begin a little at a time, first come, first served, with a look at all sockets in between.
 *
 * Left alone, Node begins everything that has arrived in one turn of its event loop. With 256 requests of a crowd a turn
 * took up to 0.8 s here, and each of the replies that a transaction waits for was read one turn later: nothing accepted
 * became durable in time, every answer was PENDING. In small turns a reply is read within milliseconds, and the same work
 * is done in the same time.
 */
export function takeTurns(): () => Promise<void> {
  const waiting: (() => void)[] = [];
  let coming = false;

  const turn = () => {
    for (const begin of waiting.splice(0, BEGIN_IN_A_TURN)) begin();
    coming = waiting.length > 0;
    // What is set now runs in the next turn, after the sockets were read.
    if (coming) setImmediate(turn);
  };

  return () =>
    new Promise((begin) => {
      waiting.push(begin);
      if (!coming) setImmediate(turn);
      coming = true;
    });
}
