import type { Database } from "./database.js";
import type { Enqueue } from "./order-queue.js";
import { answerHeld, type Reserve, reservationOf } from "./reservations.js";
import { type FindSale, itemOf, refusalOf, saleOf } from "./sales.js";
import type { StockInRedis } from "./stock-in-redis.js";
import { findHeld } from "./write-order.js";

/**
 * Round 3, and the straightforward build: Redis decides, a job is added, and a worker writes the order later. Nothing is on disk
 * when the buyer hears QUEUED.
 */
export function reserveInRedisThenQueue(
  db: Database,
  stock: StockInRedis,
  findSale: FindSale,
  enqueue: Enqueue,
): Reserve {
  return async (claim) => {
    const sale = await saleOf(findSale, claim);
    itemOf(sale, claim);
    const refusal = refusalOf(sale, claim);
    if (refusal) return { status: refusal };
    const decision = await stock.decide(claim);
    if (decision.kind === "CLAIMED") {
      const { saleId, itemId, quantity, requestId } = decision.reservation;
      const claimed = { saleId, itemId, quantity, requestId, buyerId: claim.buyerId };
      const held = await findHeld(db, claimed);
      if (held) return answerHeld(claim, held);
      // Its job may have got lost on the way, for example with the process that was about to add it.
      await enqueue(claimed);
      return answerHeld(claim, reservationOf(claimed, "QUEUED"));
    }
    if (decision.kind !== "ACCEPTED") return { status: decision.kind };
    try {
      await enqueue(claim);
    } catch (error) {
      await stock.giveBack(claim);
      throw error;
    }
    return { status: "QUEUED", reservation: reservationOf(claim, "QUEUED") };
  };
}
