import { withTrial } from "../trial.js";
import { ACCEPTED, acceptedOf, cpuEach, loadDetails, type Measure, roundOf, SHOPS, unexpected } from "./measure.js";

const CONNECTIONS = 64;

/**
 * Orders a second from the first request to the last order in the database. Every buyer wants one and there is one for each;
 * who hears that he should come again does, as often as it takes.
 */
export const decided: Measure = {
  name: "decided",
  contenders: [...SHOPS],
  round: (bench, contender) =>
    withTrial(bench, contender, { workers: true }, async (trial) => {
      const buyers = bench.quick ? 2_000 : 6_000;
      const warmUpBuyers = bench.quick ? 500 : 1_000;
      const storm = (prefix: string, count: number, target: { saleId: string; itemId: string }) =>
        trial.load({
          pace: { kind: "closed", connections: CONNECTIONS },
          buyers: { prefix, count, behaviour: "once" },
          target,
          until: { seconds: 300 },
        });

      const warmUp = await trial.openSale(warmUpBuyers);
      await storm("early-", warmUpBuyers, warmUp);
      await trial.whenOrdered(warmUp, warmUpBuyers);

      const target = await trial.openSale(buyers);
      const before = trial.cpu();
      const [result, endedAt] = await Promise.all([storm("buyer-", buyers, target), trial.whenOrdered(target, buyers)]);
      const seconds = (endedAt - result.startedAt) / 1_000;
      const details = {
        ...loadDetails(result),
        ...cpuEach(before, trial.cpu(), buyers),
        "accepted a second": buyers / result.seconds,
        "share of answers accepted": acceptedOf(result.answers) / result.requests,
      };
      const breaches = [
        ...(acceptedOf(result.answers) === buyers
          ? []
          : unexpected("of buyers with one each", result.answers, ACCEPTED)),
        ...(await trial.findBreaches(target)),
      ];
      return roundOf(buyers / seconds, breaches, details, result.answers);
    }),
};
