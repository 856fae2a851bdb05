import type { ContenderName } from "../names.js";
import { type Trial, withTrial } from "../trial.js";
import { cpuEach, loadDetails, type Measure, roundOf, SHOPS, unexpected } from "./measure.js";

const UNITS = 100;
const STRANGERS = 20_000;
const CONNECTIONS = 64;
const CEILINGS: readonly ContenderName[] = ["yoga-noop", "yoga-noop-lean", "echo"];

/**
 * Refusals a second: an item that was sold out by real requests, then strangers, each with a token of his own and a new
 * requestId each time. The ceilings get the same requests and answer them without any work.
 */
export const soldOut: Measure = {
  name: "sold-out",
  contenders: [...SHOPS, ...CEILINGS],
  round: (bench, contender) =>
    withTrial(bench, contender, { workers: true }, async (trial) => {
      const isCeiling = CEILINGS.includes(contender);
      const target = isCeiling ? { saleId: "none", itemId: "none" } : await sellOut(trial);
      let before = trial.cpu();
      const result = await trial.load(
        {
          pace: { kind: "closed", connections: CONNECTIONS },
          buyers: { prefix: "stranger-", count: STRANGERS, behaviour: "strangers" },
          target,
          warmUpSeconds: bench.quick ? 2 : 3,
          until: { seconds: bench.quick ? 3 : 8 },
        },
        () => {
          before = trial.cpu();
        },
      );
      const details = { ...loadDetails(result), ...cpuEach(before, trial.cpu(), result.requests) };
      const breaches = isCeiling
        ? unexpected("load", result.httpStatuses, ["200"])
        : [...unexpected("sold out", result.answers, ["SOLD_OUT"]), ...(await trial.findBreaches(target))];
      return roundOf(result.requests / result.seconds, breaches, details, result.answers);
    }),
};

/** Sells all there is to real buyers, and waits until their orders are written. */
export async function sellOut(trial: Trial): Promise<{ saleId: string; itemId: string }> {
  const target = await trial.openSale(UNITS);
  await trial.load({
    pace: { kind: "closed", connections: 16 },
    buyers: { prefix: "early-", count: UNITS, behaviour: "once" },
    target,
    until: { seconds: 60 },
  });
  await trial.whenOrdered(target, UNITS);
  return target;
}
