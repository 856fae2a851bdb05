import { createHash } from "node:crypto";
import type { PaymentProvider } from "./provider.js";

/** Where the simulated provider's page is. */
export const SIMULATOR_PATH = "/demo/pay";

/**
 * A provider for the demo: no money moves, and it remembers nothing. What it needs to know when the buyer pays is in the
 * address that it gives out, and the same order has the same payment whenever it is asked for.
 */
export function createPaymentSimulator(): PaymentProvider {
  return {
    async requestPayment({ orderId, amountMinor, currency }) {
      const order = createHash("sha256").update(`${orderId} ${amountMinor} ${currency}`).digest("base64url");
      const paymentRef = `sim_${order.slice(0, 24)}`;
      const query = new URLSearchParams({ orderId, paymentRef, amountMinor: String(amountMinor), currency });
      return { paymentRef, url: `${SIMULATOR_PATH}?${query}` };
    },
  };
}
