import type { LoadResult } from "../load/plan.js";
import { type Target, type Trial, withTrial } from "../trial.js";
import { acceptedOf, type Measure, roundOf, unexpected } from "./measure.js";

const CONNECTIONS = 64;
/** Far more than are under way at half the peak: none is waited for unless the server stalls. */
const OPEN_CONNECTIONS = 256;
/** More than anybody takes in a second here. */
const BUYERS_A_SECOND = 20_000;

/**
 * How much longer the slowest of a hundred waits at half the load that Sluice can take than somebody who is alone. All are
 * accepted, and their orders are written meanwhile.
 */
export const halfPeak: Measure = {
  name: "half-peak",
  contenders: ["sluice"],
  round: (bench, contender) =>
    withTrial(bench, contender, { workers: true }, async (trial) => {
      const seconds = bench.quick ? 3 : 10;
      const sale = await saleForAll(trial);
      const closed = (prefix: string, connections: number, until: { seconds: number } | { requests: number }) =>
        sale.load(prefix, "seconds" in until ? until.seconds * BUYERS_A_SECOND : until.requests, {
          pace: { kind: "closed", connections },
          until,
        });

      await closed("early-", CONNECTIONS, { seconds: bench.quick ? 2 : 3 });
      const peak = await closed("peak-", CONNECTIONS, { seconds });
      const peakRate = acceptedOf(peak.answers) / peak.seconds;
      const lone = await closed("lone-", 1, { requests: bench.quick ? 200 : 500 });
      const perSecond = Math.round(peakRate / 2);
      const half = await sale.load("half-", perSecond * seconds, {
        pace: { kind: "open", connections: OPEN_CONNECTIONS, perSecond },
        until: { requests: perSecond * seconds },
      });

      const breaches = [
        ...[peak, lone, half].flatMap(({ answers }) => unexpected("units for all", answers, ["QUEUED"])),
        ...(await trial.findBreaches(sale.target)),
      ];
      const details = {
        "peak, accepted a second": peakRate,
        "p99 at half the peak, ms": half.latencyMs.p99,
        "p50 at half the peak, ms": half.latencyMs.p50,
        "lone p50, ms": lone.latencyMs.p50,
        "lone p99, ms": lone.latencyMs.p99,
      };
      return roundOf(half.latencyMs.p99 / lone.latencyMs.p50, breaches, details, half.answers);
    }),
};

interface OpenSale {
  readonly target: Target;
  /** Sends a load, and waits until all that it got is written. */
  load(prefix: string, buyers: number, plan: Pick<Parameters<Trial["load"]>[0], "pace" | "until">): Promise<LoadResult>;
}

/** A sale that is never sold out, and how many have bought so far. */
async function saleForAll(trial: Trial): Promise<OpenSale> {
  const target = await trial.openSale(1_000_000);
  let orders = 0;
  return {
    target,
    async load(prefix, count, plan) {
      const buyers = { prefix, count, behaviour: "once" } as const;
      const result = await trial.load({ ...plan, buyers, target });
      orders += acceptedOf(result.answers);
      await trial.whenOrdered(target, orders);
      return result;
    },
  };
}
