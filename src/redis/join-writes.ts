import type { Socket } from "node:net";
import type { Redis } from "ioredis";

/**
 * Returns what has all commands sent in one piece that are begun in this turn of the event loop. ioredis hands each to the
 * system by itself: of an API that answers from Redis alone, that was a fifth of its time, of a worker that acknowledges
 * batches of jobs a tenth.
 */
export function joinWrites(client: Redis): () => void {
  let joined: Socket | undefined;
  return () => {
    const stream = streamOf(client);
    if (!stream || joined === stream) return;
    joined = stream;
    stream.cork();
    setImmediate(() => {
      joined = undefined;
      stream.uncork();
    });
  };
}

/** The socket of a connection; ioredis makes a new one each time it connects. */
export function streamOf(client: Redis): Socket | undefined {
  return (client as unknown as { stream?: Socket }).stream;
}
