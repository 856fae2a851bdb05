import { query } from "../stores.js";
import type { Target } from "../trial.js";

/** What a reservation's buyer would know of it. */
export interface Reservation {
  readonly requestId: string;
  readonly buyerId: string;
}

/**
 * Puts decided reservations into a sale that is still a draft, as if buyers had made them, each with its order: through the
 * API a million would take minutes. Opening the sale brings them to Redis.
 */
export async function fillSale(databaseUrl: string, { saleId, itemId }: Target, reservations: number): Promise<void> {
  const values = [saleId, itemId, reservations];
  await query(
    databaseUrl,
    `INSERT INTO requests ("saleId", "requestId", "buyerId", "itemId", quantity, epoch, seq, "acceptedAt", "dueAt",
                           "queuedEpoch", outcome, "decidedAt")
     SELECT $1, gen_random_uuid(), 'holder-' || at, $2, 1, 1, at, now(), now(), 1, 'ORDERED', now()
     FROM generate_series(1, $3::int) AS at`,
    values,
  );
  await query(
    databaseUrl,
    `INSERT INTO orders ("saleId", "requestId", "buyerId", "activeBuyerId", "itemId", quantity, "totalMinor", currency, "payBy")
     SELECT "saleId", "requestId", "buyerId", "buyerId", "itemId", 1, 2500, 'EUR', now() + interval '1 day'
     FROM requests WHERE "saleId" = $1`,
    [saleId],
  );
  await query(
    databaseUrl,
    `INSERT INTO stock_movements ("saleId", "itemId", "requestId", kind, quantity)
     SELECT "saleId", "itemId", "requestId", 'LOCK', 1 FROM requests WHERE "saleId" = $1`,
    [saleId],
  );
  await query(
    databaseUrl,
    'UPDATE sale_items SET available = available - $3, locked = locked + $3 WHERE "saleId" = $1 AND id = $2',
    values,
  );
  // They are of the epoch before the one in which the sale is opened.
  await query(databaseUrl, "UPDATE sales SET epoch = 1 WHERE id = $1", [saleId]);
}

/** What autovacuum would get to in the middle of a measure. */
export async function tidyUp(databaseUrl: string): Promise<void> {
  await query(databaseUrl, "VACUUM (ANALYZE) requests, orders, stock_movements, sale_items");
  await query(databaseUrl, "CHECKPOINT");
}

/** The reservations of a sale. */
export function readReservations(databaseUrl: string, saleId: string): Promise<Reservation[]> {
  return query<{ requestId: string; buyerId: string }>(
    databaseUrl,
    'SELECT "requestId", "buyerId" FROM requests WHERE "saleId" = $1 ORDER BY "requestId"',
    [saleId],
  );
}
