import { SECOND } from "../domain/time.js";
import { pause } from "../lifecycle/pause.js";
import { type LoadDeps, type LoadReason, loadSale } from "./load.js";

/** Loads that the process asks for in passing: one at a time a sale, in the background. */
export interface Loads {
  /** Sees to it that the sale is loaded; see LoadRequestOptions for `mendsEpoch`. Never throws, never waits. */
  request(saleId: string, reason: LoadReason, mendsEpoch?: number | null): void;
  /** Resolves when no load is under way; one that fails from now on is not tried again. */
  settled(): Promise<void>;
}

/** What was found wrong again and again is mended once in this time, so that a fault that stays can't keep a sale shut. */
const BETWEEN_REPAIRS_MS = 2 * SECOND;

export function createLoads(deps: LoadDeps): Loads {
  const running = new Map<string, Promise<void>>();
  /** what was asked for while a load was under way, which may have begun before it was seen */
  const wanted = new Map<string, { reason: LoadReason; mendsEpoch: number }>();
  const repairedAt = new Map<string, number>();
  let ending = false;

  const repairs = async (saleId: string, reason: LoadReason, mendsEpoch: number) => {
    const sinceLast = performance.now() - (repairedAt.get(saleId) ?? Number.NEGATIVE_INFINITY);
    if (sinceLast < BETWEEN_REPAIRS_MS) await pause(BETWEEN_REPAIRS_MS - sinceLast);
    repairedAt.set(saleId, performance.now());
    deps.metrics.drift.inc({ stage: reason });
    deps.log.error({ saleId, reason, epoch: mendsEpoch }, "the two stores disagree: the sale has to be loaded again");
  };

  const tryOnce = async (
    saleId: string,
    reason: LoadReason,
    mendsEpoch: number | null,
    attempt: number,
  ): Promise<boolean> => {
    try {
      await loadSale(deps, saleId, { reason, mendsEpoch });
      return true;
    } catch (error) {
      const level = attempt % 10 === 0 ? "warn" : "debug";
      deps.log[level]({ saleId, reason, attempt, err: error }, "the sale could not be loaded; it is tried again");
      // Whoever asks is told to come back in a second or more.
      await pause((SECOND / 4) * Math.min(attempt + 1, 8) * (0.75 + Math.random() / 2));
      return false;
    }
  };

  const run = async (saleId: string, reason: LoadReason, mendsEpoch: number | null) => {
    if (mendsEpoch !== null) await repairs(saleId, reason, mendsEpoch);
    let attempt = 0;
    let done = await tryOnce(saleId, reason, mendsEpoch, attempt);
    // That a sale is not loaded is noticed again by the next request. What the stores disagree about is not: it was met
    // once, and stays wrong while one of them is away.
    while (!done && mendsEpoch !== null && !ending) {
      attempt += 1;
      done = await tryOnce(saleId, reason, mendsEpoch, attempt);
    }
    running.delete(saleId);
    const next = wanted.get(saleId);
    wanted.delete(saleId);
    if (next) request(saleId, next.reason, next.mendsEpoch);
  };

  const request = (saleId: string, reason: LoadReason, mendsEpoch: number | null = null) => {
    if (!running.has(saleId)) {
      running.set(saleId, run(saleId, reason, mendsEpoch));
    } else if (mendsEpoch !== null && mendsEpoch > (wanted.get(saleId)?.mendsEpoch ?? -1)) {
      wanted.set(saleId, { reason, mendsEpoch });
    }
  };

  return {
    request,
    async settled() {
      ending = true;
      while (running.size > 0) await Promise.all(running.values());
    },
  };
}
