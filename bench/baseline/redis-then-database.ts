import type { Database } from "./database.js";
import { answerHeld, type Reserve, reservationOf } from "./reservations.js";
import { type FindSale, itemOf, refusalOf, saleOf } from "./sales.js";
import type { StockInRedis } from "./stock-in-redis.js";
import { findHeld, writeOrder } from "./write-order.js";

/**
 * Round 2: Redis decides, and the order is written before the answer. What the database refuses, or fails at, gives its stock
 * back: also where a COMMIT was done and only its reply was lost, which is what this way of building it can't tell.
 */
export function reserveInRedisThenWrite(db: Database, stock: StockInRedis, findSale: FindSale): Reserve {
  return async (claim) => {
    const sale = await saleOf(findSale, claim);
    const item = itemOf(sale, claim);
    const refusal = refusalOf(sale, claim);
    if (refusal) return { status: refusal };
    const decision = await stock.decide(claim);
    if (decision.kind === "CLAIMED") {
      const held = decision.reservation;
      return answerHeld(claim, (await findHeld(db, { ...held, buyerId: claim.buyerId })) ?? held);
    }
    if (decision.kind !== "ACCEPTED") return { status: decision.kind };

    const written = await writeOrder(db, sale, item, claim).catch(async (error: unknown) => {
      await stock.giveBack(claim);
      throw error;
    });
    if (written === "ORDERED") return { status: "DECIDED", reservation: reservationOf(claim, "SUCCESS") };
    await stock.giveBack(claim);
    const held = await findHeld(db, claim);
    if (held) return answerHeld(claim, held);
    return { status: written === "HELD" ? "REQUEST_CONFLICT" : "SOLD_OUT" };
  };
}
