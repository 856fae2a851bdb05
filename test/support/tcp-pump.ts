import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** What a proxy does to all its connections; read anew for every chunk. */
export type PipeControls = { swallow: boolean; swallowedBytes: number; hold: boolean; delayMs: number };

/**
 * Carries bytes one way, in order and with back-pressure.
 *
 * @param isReply whether `swallow` is meant for this direction
 * @param isStranded whether nothing moves on this connection any more
 */
export function pump(from: Socket, to: Socket, controls: PipeControls, isReply: boolean, isStranded: () => boolean) {
  let lostBytes = 0;
  let full = false;
  // Chunks wait for the one before them, so that a shorter delay can't overtake a longer one.
  let queue: Promise<void> = Promise.resolve();
  let waiting = 0;

  const update = () => {
    if (controls.hold || full || isStranded()) from.pause();
    else from.resume();
  };
  const write = (chunk: Buffer) => {
    if (to.destroyed || to.write(chunk)) return;
    full = true;
    update();
    to.once("drain", () => {
      full = false;
      update();
    });
  };
  from.on("data", (chunk: Buffer) => {
    if (isReply && controls.swallow) {
      lostBytes += chunk.length;
      controls.swallowedBytes += chunk.length;
      return;
    }
    if (controls.delayMs === 0 && waiting === 0) return write(chunk);
    waiting += 1;
    const due = sleep(controls.delayMs);
    queue = queue
      .then(() => due)
      .then(() => {
        waiting -= 1;
        write(chunk);
      });
  });
  from.once("end", () => {
    queue = queue.then(() => void to.end());
  });
  return { update, lostBytes: () => lostBytes };
}
