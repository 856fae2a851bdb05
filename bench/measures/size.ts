import { fillSale, tidyUp } from "../sluice/fill-sale.js";
import { median } from "../statistics.js";
import { makeSale, type Target, withTrial } from "../trial.js";
import { acceptedOf, cpuEach, type Measure, roundOf, unexpected } from "./measure.js";

const SMALL = 1_000;
const CONNECTIONS = 32;
const BUYERS_A_SECOND = 20_000;
const UNITS_MORE = 1_000_000;

/**
 * How much more a reservation costs in a sale that has a million of them than in one that has a thousand: buyers accepted a
 * second in each, in turns, with both sales open in the same processes and their orders written meanwhile.
 */
export const size: Measure = {
  name: "size",
  contenders: ["sluice"],
  round: (bench, contender) =>
    withTrial(bench, contender, { workers: true }, async (trial) => {
      const large = bench.quick ? 100_000 : 1_000_000;
      const seconds = bench.quick ? 2 : 4;
      const pairs = bench.quick ? 2 : 3;
      const sales = [await filled(SMALL), await filled(large)] as const;
      await tidyUp(trial.stores.databaseUrl);
      for (const { target } of sales) await trial.running.openSale(target.saleId);

      const breaches: string[] = [];
      const ratios: number[] = [];
      const details: Record<string, number[]> = {};
      // The first pair warms up.
      for (let pair = 0; pair <= pairs; pair += 1) {
        const rates: number[] = [];
        for (const sale of sales) {
          const { rate, found } = await storm(sale, `pair-${pair}-`);
          rates.push(rate);
          if (pair === 0) continue;
          for (const [name, value] of Object.entries(found)) {
            details[`${sale.size}: ${name}`] = [...(details[`${sale.size}: ${name}`] ?? []), value];
          }
        }
        if (pair > 0) ratios.push((rates[0] as number) / (rates[1] as number));
      }
      for (const { target } of sales) breaches.push(...(await trial.findBreaches(target)));
      const medians = Object.entries(details).map(([name, values]) => [name, median(values) as number] as const);
      return roundOf(median(ratios) as number, breaches, Object.fromEntries(medians));

      async function filled(reservations: number): Promise<FilledSale> {
        const target = await makeSale(trial.stores.databaseUrl, reservations + UNITS_MORE);
        await fillSale(trial.stores.databaseUrl, target, reservations);
        return { size: reservations, target, orders: reservations };
      }

      async function storm(sale: FilledSale, prefix: string) {
        const before = trial.cpu();
        const result = await trial.load({
          pace: { kind: "closed", connections: CONNECTIONS },
          buyers: { prefix, count: seconds * BUYERS_A_SECOND, behaviour: "once" },
          target: sale.target,
          until: { seconds },
        });
        const accepted = acceptedOf(result.answers);
        sale.orders += accepted;
        await trial.whenOrdered(sale.target, sale.orders);
        breaches.push(...unexpected(`a sale with ${sale.size}`, result.answers, ["QUEUED"]));
        const rate = accepted / result.seconds;
        const latency = { "p50, ms": result.latencyMs.p50, "p99, ms": result.latencyMs.p99 };
        return { rate, found: { "accepted a second": rate, ...latency, ...cpuEach(before, trial.cpu(), accepted) } };
      }
    }),
};

interface FilledSale {
  readonly size: number;
  readonly target: Target;
  orders: number;
}
