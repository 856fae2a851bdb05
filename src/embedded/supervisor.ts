/** Keeps a process running: started again when it dies, with growing pauses, until it is plain that this won't help. */
import { setTimeout as sleep } from "node:timers/promises";
import { messageOf, StartFailure } from "./failure.js";
import { describeExit, type Running, tailOf } from "./spawn.js";

const SECOND = 1_000;

/** Something that can be started again and again. */
export interface Service {
  readonly name: string;
  readonly logPath: string;
  start(): Promise<Running>;
}

/** When to try again, and when to stop trying. */
export interface RestartPolicy {
  /** Who lived shorter than this died quickly. */
  readonly quickMs: number;
  /** So many quick deaths one after another are the last. */
  readonly maxQuickDeaths: number;
  /** The first pause; each further one is twice as long. */
  readonly firstPauseMs: number;
}

const defaultPolicy: RestartPolicy = { quickMs: 30 * SECOND, maxQuickDeaths: 5, firstPauseMs: SECOND / 2 };

/** A service that is being kept running. */
export interface Supervised {
  /** Resolves, with what to tell, when it was given up; never rejects. */
  readonly gaveUp: Promise<StartFailure>;
  /** Stops it for good. Resolves when it is gone. */
  stop(hurry?: AbortSignal): Promise<void>;
}

/**
 * Starts a service and keeps it running.
 *
 * @param say is told of each death and each new start
 * @throws what the first start throws: that is no matter of trying again
 */
export async function supervise(
  service: Service,
  say: (line: string) => void,
  policy = defaultPolicy,
): Promise<Supervised> {
  let running: Running | null = await service.start();
  let startedAt = Date.now();
  let quickDeaths = 0;
  const stopping = new AbortController();

  const watch = async (): Promise<StartFailure | null> => {
    for (;;) {
      let death = "could not be started again";
      if (running) {
        death = describeExit(await running.exited);
        running = null;
      }
      if (stopping.signal.aborted) return null;
      quickDeaths = Date.now() - startedAt < policy.quickMs ? quickDeaths + 1 : 1;
      if (quickDeaths >= policy.maxQuickDeaths) {
        const log = tailOf(service.logPath);
        return new StartFailure(
          `${service.name} ${death}, ${quickDeaths} times within moments: given up. From ${service.logPath}:\n${log}`,
        );
      }
      const pauseMs = policy.firstPauseMs * 2 ** (quickDeaths - 1);
      say(`${service.name} ${death}; starting it again in ${pauseMs / SECOND} s. Its log: ${service.logPath}`);
      await sleep(pauseMs, undefined, { signal: stopping.signal }).catch(() => {});
      if (stopping.signal.aborted) return null;
      startedAt = Date.now();
      try {
        running = await service.start();
        if (stopping.signal.aborted) return null;
        say(`${service.name} was started again.`);
      } catch (error) {
        say(messageOf(error));
      }
    }
  };

  const watching = watch();
  return {
    gaveUp: new Promise((resolve) => {
      void watching.then((failure) => failure && resolve(failure));
    }),
    stop: async (hurry) => {
      stopping.abort();
      await running?.stop(hurry);
      // A start that was under way when we were told to stop has a process by now.
      await watching;
      await running?.stop(hurry);
    },
  };
}
