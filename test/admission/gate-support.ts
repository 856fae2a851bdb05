/** What the tests of the sold-out gate share: requests as they come in, and gates that are known to be shut. */
import { randomUUID } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import { admit } from "../../src/admission/admit.js";
import { orderIdOf } from "../../src/domain/ids.js";
import { cancelOrder } from "../../src/operations/cancel.js";
import type { ReserveInput, ReserveOutcome } from "../../src/operations/reserve.js";
import type { Resources } from "../../src/resources.js";
import type { Stores, TestSale, Wish } from "../operations/support.js";
import { waitFor } from "../support/wait.js";

/** Nothing in a test is over by itself: whatever opens a gate was news, or another reply. */
export const STAYS = { leaseMs: 600_000, heardWithinMs: 30_000 };

export const WAIT_MS = 30_000;

export function inputOf(sale: TestSale, buyerId: string, wish: Wish = {}): ReserveInput {
  const { requestId = randomUUID(), quantity = 1 } = wish;
  return { saleId: sale.id, itemId: sale.itemId, buyerId, requestId, quantity };
}

/** A buyer's call, a turn of the event loop after it has come. */
export async function come(
  resources: Resources,
  sale: TestSale,
  buyerId: string,
  wish: Wish = {},
): Promise<ReserveOutcome> {
  await setImmediate();
  return admit(resources, inputOf(sale, buyerId, wish));
}

/** Whether a stranger would be answered without Redis. */
export function isShut(resources: Resources, sale: TestSale): boolean {
  return resources.soldOutGate.answers(inputOf(sale, `stranger-${randomUUID()}`));
}

/** Has strangers come until the gate is shut for them. */
export async function shut(resources: Resources, sale: TestSale): Promise<void> {
  await waitFor(
    async () => {
      if (isShut(resources, sale)) return true;
      await come(resources, sale, `stranger-${randomUUID()}`);
      return false;
    },
    { what: "the gate to be shut", timeoutMs: WAIT_MS },
  );
}

export async function untilOpen(resources: Resources, sale: TestSale): Promise<void> {
  await waitFor(() => !isShut(resources, sale), { what: "the gate to be open", timeoutMs: WAIT_MS });
}

/** What the process has counted, by label. */
export async function counted(resources: Resources, name: string): Promise<Counts> {
  const metric = await resources.metrics.registry.getSingleMetric(`sluice_sold_out_gate_${name}`)?.get();
  const counts = Object.fromEntries(
    (metric?.values ?? []).map(({ labels, value }) => [Object.values(labels).join(), value]),
  );
  return counts as Counts;
}

type Counts = Record<
  "answer" | "maybe" | "probe" | "read" | "too_many" | "event" | "reply" | "lease" | "silence" | "",
  number
>;

/** Gives an order's units back, and tells Redis. */
export function cancel(resources: Resources, sale: TestSale, buyerId: string, requestId: string): Promise<unknown> {
  return cancelOrder(resources, { orderId: orderIdOf(sale.id, requestId), by: "buyer", buyerId });
}

/** A unit that comes back and nobody hears of: as when the message is lost. */
export async function restockUnheard(stores: Stores, sale: TestSale): Promise<void> {
  const [key, stock] = [`sluice:{${sale.id}}:sale`, `sluice:{${sale.id}}:stock`];
  await stores.client.multi().hincrby(key, `g:${sale.itemId}`, 1).hincrby(stock, sale.itemId, 1).exec();
}
