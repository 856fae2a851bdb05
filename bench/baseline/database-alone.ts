import type { Database } from "./database.js";
import { answerHeld, type Reserve, reservationOf } from "./reservations.js";
import { type FindSale, itemOf, refusalOf, saleOf } from "./sales.js";
import { decideAndWriteOrder, findHeld } from "./write-order.js";

/** Round 1: every request goes to the database, which decides in the transaction that writes the order. */
export function reserveInDatabase(db: Database, findSale: FindSale): Reserve {
  return async (claim) => {
    const sale = await saleOf(findSale, claim);
    const item = itemOf(sale, claim);
    const refusal = refusalOf(sale, claim);
    if (refusal) return { status: refusal };
    const written = await decideAndWriteOrder(db, sale, item, claim);
    if (written === "ORDERED") return { status: "DECIDED", reservation: reservationOf(claim, "SUCCESS") };
    const held = await findHeld(db, claim);
    if (held) return answerHeld(claim, held);
    // A unique constraint said no, and no order of the buyer's stands for it: the requestId is another buyer's.
    return { status: written === "HELD" ? "REQUEST_CONFLICT" : "SOLD_OUT" };
  };
}
