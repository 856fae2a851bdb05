import { Prisma } from "../../src/db/generated/client.js";
import type { Database } from "./database.js";
import { type Claim, type Reservation, reservationOf } from "./reservations.js";
import type { Item, Sale } from "./sales.js";

/** What the database made of a claim. */
export type Written =
  | "ORDERED"
  /** this request or another one of the buyer's has an order: nothing was written now */
  | "HELD"
  | "NO_STOCK";

/**
 * Writes the order of a claim that was accepted, in one transaction. Safe to repeat: the second order of a request, or of a
 * buyer, violates a unique constraint.
 *
 * As a list of statements, the stock's last: so the item's row, which all of them want, is locked for one statement and not for
 * three. It takes two thirds of the processor time of a transaction with a function, which is how round 1 does it.
 */
export async function writeOrder(db: Database, sale: Sale, item: Item, claim: Claim): Promise<Written> {
  const { saleId, itemId, quantity } = claim;
  return orRefused(async () => {
    await db.$transaction([
      db.order.create({ data: orderOf(sale, item, claim), select: { requestId: true } }),
      db.stockMovement.create({ data: movementOf(claim), select: { id: true } }),
      db.saleItem.update({
        where: { saleId_id: { saleId, id: itemId }, available: { gte: quantity } },
        data: { available: { decrement: quantity }, locked: { increment: quantity } },
        select: { id: true },
      }),
    ]);
    return "ORDERED";
  });
}

/**
 * Decides a claim and writes its order in one transaction: the stock where there is enough, the order, the movement. The stock
 * comes first, because that is where most are refused.
 */
export async function decideAndWriteOrder(db: Database, sale: Sale, item: Item, claim: Claim): Promise<Written> {
  const { saleId, itemId, quantity } = claim;
  return orRefused(() =>
    db.$transaction(async (tx) => {
      const { count } = await tx.saleItem.updateMany({
        where: { saleId, id: itemId, available: { gte: quantity } },
        data: { available: { decrement: quantity }, locked: { increment: quantity } },
      });
      if (count === 0) return "NO_STOCK";
      await tx.order.create({ data: orderOf(sale, item, claim), select: { requestId: true } });
      await tx.stockMovement.create({ data: movementOf(claim), select: { id: true } });
      return "ORDERED";
    }),
  );
}

/** The order of this request, else another valid one of the buyer's in the sale, as a reservation; null where there is none. */
export async function findHeld(db: Database, { saleId, requestId, buyerId }: Claim): Promise<Reservation | null> {
  const orders = await db.order.findMany({
    where: { saleId, buyerId, OR: [{ requestId }, { activeBuyerId: buyerId }] },
  });
  const held = orders.find((order) => order.requestId === requestId) ?? orders[0];
  return held ? reservationOf(held, "SUCCESS") : null;
}

/** What Prisma calls the violation of a unique constraint, and an update that found no row. */
const REFUSALS = new Map<string, Written>([
  ["P2002", "HELD"],
  ["P2025", "NO_STOCK"],
]);

async function orRefused(write: () => Promise<Written>): Promise<Written> {
  try {
    return await write();
  } catch (error) {
    const refusal = error instanceof Prisma.PrismaClientKnownRequestError && REFUSALS.get(error.code);
    if (!refusal) throw error;
    return refusal;
  }
}

function orderOf(
  sale: Sale,
  item: Item,
  { saleId, itemId, quantity, requestId, buyerId }: Claim,
): Prisma.OrderCreateInput {
  return {
    saleId,
    itemId,
    quantity,
    requestId,
    buyerId,
    activeBuyerId: buyerId,
    totalMinor: quantity * item.priceMinor,
    currency: item.currency,
    payBy: new Date(Date.now() + sale.paymentWindowSeconds * 1_000),
  };
}

function movementOf({ saleId, itemId, requestId, quantity }: Claim): Prisma.StockMovementCreateInput {
  return { saleId, itemId, requestId, quantity, kind: "LOCK" };
}
