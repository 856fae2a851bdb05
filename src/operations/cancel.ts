import { insertAudit } from "../db/audit.js";
import { findOrderNow } from "../db/order-changes.js";
import { conflict, notFound } from "../domain/errors.js";
import { orderIdOf, parseOrderId } from "../domain/ids.js";
import type { Order } from "../domain/model.js";
import { type ChangeOrdersDeps, changingOrders } from "./change-orders.js";
import { checkReason } from "./check-input.js";

export type CancelCommand =
  /** their own, if it is unpaid */
  | { readonly orderId: string; readonly by: "buyer"; readonly buyerId: string }
  /** anybody's unpaid one, audited */
  | { readonly orderId: string; readonly by: "operator"; readonly actor: string; readonly reason: string };

/**
 * Cancels an unpaid order, also one whose window has passed a moment ago, and gives its stock back: the buyer may reserve
 * again when this returns. A repeat returns the cancelled order, whoever had cancelled it.
 *
 * @throws SluiceError NOT_FOUND (also another buyer's), CONFLICT (paid, expired or refunded), BAD_USER_INPUT; a database
 *   error, after which a repeat tells
 */
export async function cancelOrder(deps: ChangeOrdersDeps, command: CancelCommand): Promise<Order> {
  if (command.by === "operator") checkReason(command.reason);
  const key = parseOrderId(command.orderId);
  if (!key) throw notFound("There is no such order.");
  return changingOrders(deps, key.saleId, async ({ tx, change }) => {
    const byBuyer = command.by === "buyer";
    const [changed] = await change({
      change: "cancel",
      requestIds: [key.requestId],
      condition: byBuyer ? { buyerId: command.buyerId } : { none: true },
      reason: byBuyer ? "CANCELLED_BY_BUYER" : "CANCELLED_BY_OPERATOR",
    });
    if (changed) {
      if (!byBuyer) {
        const { actor, reason } = command;
        const details = { orderId: orderIdOf(key.saleId, key.requestId) };
        await insertAudit(tx, { saleId: key.saleId, actor, action: "cancelOrderByOperator", reason, details });
      }
      return changed.order;
    }
    const now = await findOrderNow(tx, key);
    if (!now || (byBuyer && now.order.buyerId !== command.buyerId)) throw notFound("There is no such order.");
    if (now.order.status !== "CANCELLED") throw conflict(`An order that is ${now.order.status} can't be cancelled.`);
    return now.order;
  });
}
