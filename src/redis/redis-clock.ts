import { SECOND } from "../domain/time.js";

const BUCKET_MS = 5 * SECOND;

/**
 * The time of the Redis server, estimated from its replies: the clock that opens and closes sales, and the one that a
 * request's deadline is told in.
 *
 * A reply was written before it arrived, so every sample is a lower bound; the best of the last seconds is used. Samples
 * age, so that a server whose clock was set back is believed again. Local time is monotonic: a step of this machine's
 * clock changes nothing.
 */
export class RedisClock {
  #offset: number | null = null;
  #previous = Number.NEGATIVE_INFINITY;
  #current = Number.NEGATIVE_INFINITY;
  #bucketEnds = 0;

  /** Takes the time that a reply carried, in milliseconds. */
  observe(serverMs: number): void {
    const local = performance.now();
    if (local >= this.#bucketEnds) {
      this.#previous = local < this.#bucketEnds + BUCKET_MS ? this.#current : Number.NEGATIVE_INFINITY;
      this.#current = Number.NEGATIVE_INFINITY;
      this.#bucketEnds = local + BUCKET_MS;
    }
    this.#current = Math.max(this.#current, serverMs - local);
    this.#offset = Math.max(this.#previous, this.#current);
  }

  /** Milliseconds since the epoch, by the server's clock; by this machine's as long as no server was met. */
  now(): number {
    return this.#offset === null ? Date.now() : performance.now() + this.#offset;
  }
}
