import type { Logger } from "../observability/logger.js";
import { pause } from "./pause.js";

export interface Loop {
  /** Resolves when the turn under way has ended; no other follows. */
  stop(): Promise<void>;
}

/**
 * Does something again and again, never twice at once. A turn that fails is told and the next one comes all the same,
 * a little later. Turns are jittered, so that many workers don't all come at the same moment.
 */
export function everyNow(
  options: { readonly name: string; readonly everyMs: number; readonly log: Logger },
  turn: () => Promise<void>,
): Loop {
  const stopping = new AbortController();
  const run = async () => {
    let failures = 0;
    while (!stopping.signal.aborted) {
      try {
        await turn();
        failures = 0;
      } catch (error) {
        failures += 1;
        const level = failures % 10 === 1 ? "warn" : "debug";
        options.log[level]({ failures, err: error }, `a turn of the ${options.name} failed; the next one tries again`);
      }
      const slower = Math.min(failures, 4);
      await pause(options.everyMs * (0.8 + Math.random() * 0.4) * (1 + slower / 2), stopping.signal);
    }
  };
  const running = run();
  return {
    async stop() {
      stopping.abort();
      await running;
    },
  };
}
