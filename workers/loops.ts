import { everyNow, type Loop } from "../src/lifecycle/loop.js";
import { forEachSale } from "../src/operations/for-each-sale.js";
import { forward } from "../src/operations/forward.js";
import { closeSales, pushState } from "../src/operations/push-state.js";
import { relay } from "../src/operations/relay.js";
import type { Resources } from "../src/resources.js";
import type { ServedQueues } from "./serve-queues.js";

/** Everything that a worker does by the clock. */
export function startLoops(resources: Resources, queues: ServedQueues): Loop[] {
  const { loops } = resources.config.tuning;
  const { log } = resources;
  /** saleId → how far the pass over its pending requests has come */
  const passes = new Map<string, number>();

  return [
    everyNow({ name: "queues", everyMs: loops.queuesMs, log }, () => queues.refresh()),
    everyNow({ name: "state pusher", everyMs: loops.statePusherMs, log }, () => pushState(resources, queues.sales())),
    everyNow({ name: "relay", everyMs: loops.relayMs, log }, () => relay(resources)),
    everyNow({ name: "closer", everyMs: loops.closerMs, log }, () => closeSales(resources)),
    everyNow({ name: "forwarder", everyMs: loops.forwarderMs, log }, async () => {
      const sales = queues.sales();
      const ids = new Set(sales.map(({ id }) => id));
      for (const id of passes.keys()) if (!ids.has(id)) passes.delete(id);
      await forEachSale(log, sales, async ({ id, epoch }) => {
        passes.set(id, await forward(resources, id, epoch, passes.get(id) ?? 0));
      });
    }),
  ];
}
