import { everyNow, type Loop } from "../src/lifecycle/loop.js";
import { compensateOld } from "../src/operations/compensate.js";
import { createExpirer } from "../src/operations/expire.js";
import { forEachSale } from "../src/operations/for-each-sale.js";
import { forward } from "../src/operations/forward.js";
import { measureDatabase, measureRedis } from "../src/operations/measure.js";
import { closeSales, pushState } from "../src/operations/push-state.js";
import { reconcile } from "../src/operations/reconcile.js";
import { relay } from "../src/operations/relay.js";
import type { Resources } from "../src/resources.js";
import type { ServedQueues } from "./serve-queues.js";

/** Everything that a worker does by the clock. */
export function startLoops(resources: Resources, queues: ServedQueues): Loop[] {
  const { loops } = resources.config.tuning;
  const { log } = resources;
  /** saleId → how far the pass over its pending requests has come */
  const passes = new Map<string, number>();

  const expirer = createExpirer(resources);
  const tellExpired = (expired: number) => {
    if (expired > 0) log.info({ expired }, "orders were not paid in time: their stock is back");
  };
  const expiring = everyNow({ name: "expirer", everyMs: loops.expirerMs, log }, async () => {
    tellExpired(await expirer.turn());
  });

  return [
    everyNow({ name: "queues", everyMs: loops.queuesMs, log }, () => queues.refresh()),
    everyNow({ name: "state pusher", everyMs: loops.statePusherMs, log }, () => pushState(resources, queues.sales())),
    everyNow({ name: "relay", everyMs: loops.relayMs, log }, () => relay(resources)),
    { stop: () => expiring.stop().then(() => expirer.settled().then(tellExpired)) },
    everyNow({ name: "compensator", everyMs: loops.compensatorMs, log }, async () => {
      const { compensateAfterMs } = resources.config.tuning;
      if (resources.wellForMs() >= compensateAfterMs) await compensateOld(resources, compensateAfterMs);
    }),
    everyNow({ name: "reconciler", everyMs: loops.reconcilerMs, log }, () =>
      reconcile(resources, queues.sales(), resources.config.tuning.overdueAfterMs),
    ),
    everyNow({ name: "closer", everyMs: loops.closerMs, log }, () => closeSales(resources)),
    // Two loops, so that a store that is away doesn't keep the other's figures back.
    everyNow({ name: "measuring of Redis", everyMs: loops.measureMs, log }, () =>
      measureRedis(resources, queues.sales()),
    ),
    everyNow({ name: "measuring of the database", everyMs: loops.measureMs, log }, () =>
      measureDatabase(resources, queues.sales()),
    ),
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
