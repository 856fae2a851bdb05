import type { RequestKey } from "../domain/model.js";
import type { Tx } from "./client.js";

/**
 * Puts units on sale, or takes some that were promised to nobody off it, with the movement that says so. Null where there
 * is no such item; `too_many` where that would take units that are promised, or leave more than the column holds.
 *
 * The caller holds the fence exclusively, so that no promise comes between.
 */
export async function adjustItem(
  tx: Tx,
  saleId: string,
  itemId: string,
  delta: number,
): Promise<"adjusted" | "too_many" | null> {
  // A statement of its own: whoever waits for the row in the next one would count promises as they were before the wait.
  const held = await tx.$queryRaw<unknown[]>`
    SELECT 1 FROM sale_items WHERE "saleId" = ${saleId} AND id = ${itemId} FOR UPDATE`;
  if (held.length === 0) return null;
  const rows = await tx.$executeRaw`
    WITH adjusted AS (
      UPDATE sale_items SET initial = initial + ${delta}, available = available + ${delta}
      WHERE "saleId" = ${saleId} AND id = ${itemId}
        AND available::bigint + ${delta} >= (
          SELECT coalesce(sum(quantity), 0) FROM requests
          WHERE "saleId" = ${saleId} AND "itemId" = ${itemId} AND outcome IS NULL
        )
        AND initial::bigint + ${delta} <= 2147483647
      RETURNING id
    )
    INSERT INTO stock_movements ("saleId", "itemId", kind, quantity)
    SELECT ${saleId}, id, 'ADJUST', ${delta} FROM adjusted`;
  return rows === 1 ? "adjusted" : "too_many";
}

/** Whether units of a request were moved so. */
export async function hasMovement(tx: Tx, key: RequestKey, kind: "REFUND_DONE" | "WRITE_OFF"): Promise<boolean> {
  const found = await tx.stockMovement.findFirst({ where: { ...key, kind }, select: { id: true } });
  return found !== null;
}
