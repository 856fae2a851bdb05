import { idArray } from "./array-text.js";
import type { Statements } from "./client.js";

/** What one statement has written of a batch. */
export interface WrittenOrders {
  /** the ids of the requests that have their order now */
  readonly requestIds: readonly string[];
  /** how old they were then, in seconds since they were accepted; empty where some were left */
  readonly ages: readonly number[];
  /** how many of the batch are undecided still: another valid order stands against them, or not all of them fit */
  readonly left: number;
}

/**
 * The common case of a batch, in one statement: where there is stock for all undecided requests and no buyer has two, it
 * locks them, writes their orders, moves the units, decides them ORDERED and notes the movements. One that another valid order
 * of its buyer stands against is left undecided; where not all fit, or a buyer has two, all are.
 *
 * All of it runs on the snapshot with which it began, also where it has waited for rows since. That does no harm, since of
 * nothing that others change under it the snapshot is believed: `FOR UPDATE` answers with the newest version of a row and
 * drops one that is decided by now; the two UPDATEs go to the newest version by themselves; and ON CONFLICT asks the index.
 * It locks as everybody does: requests, then items, each by key; then inserts.
 *
 * The planner must have no choice: of a table that has grown by a crowd since it was analyzed it believes that hardly a row
 * is undecided, and read all of them by their partial index (900 µs an order with 20,000 waiting). So each row is looked up
 * by itself, and asked for `decidedAt`, which a CHECK ties to the outcome: that index can't answer it. It is planned anew for
 * each batch, in a third of a millisecond, since a plan that was made while the table was empty reads all of it.
 */
export async function writeOrdersThatFit(
  tx: Statements,
  saleId: string,
  requestIds: readonly string[],
): Promise<WrittenOrders> {
  const [result] = await tx.$queryRaw<{ ids: string | null; ages: string | null; open: number }[]>`
    WITH open AS MATERIALIZED (
      SELECT r.* FROM unnest(${idArray([...requestIds].sort())}::uuid[]) AS wanted(id)
      CROSS JOIN LATERAL (
        SELECT "requestId", "buyerId", "itemId", quantity, greatest(0, extract(epoch FROM now() - "acceptedAt")) AS age
        FROM requests WHERE "saleId" = ${saleId} AND "requestId" = wanted.id AND "decidedAt" IS NULL
        LIMIT 1 FOR UPDATE
      ) r
    ),
    wanted AS MATERIALIZED (SELECT "itemId", sum(quantity) AS units FROM open GROUP BY "itemId"),
    stock AS MATERIALIZED (
      SELECT id, available, "priceMinor", currency FROM sale_items
      WHERE "saleId" = ${saleId} AND id = ANY(ARRAY(SELECT "itemId" FROM wanted))
      ORDER BY id
      FOR UPDATE
    ),
    fitting AS MATERIALIZED (
      SELECT coalesce(bool_and(coalesce(s.available >= w.units, false)), false)
             AND (SELECT count(*) = count(DISTINCT "buyerId") FROM open) AS all_of_them
      FROM wanted w LEFT JOIN stock s ON s.id = w."itemId"
    ),
    written AS (
      INSERT INTO orders ("saleId", "requestId", "buyerId", "activeBuyerId", "itemId", quantity, "totalMinor", currency,
                          status, "payBy")
      SELECT ${saleId}, r."requestId", r."buyerId", r."buyerId", i.id, r.quantity, r.quantity * i."priceMinor",
             i.currency, 'PENDING_PAYMENT', now() + s."paymentWindowSeconds" * interval '1 second'
      FROM open r
      JOIN stock i ON i.id = r."itemId"
      JOIN sales s ON s.id = ${saleId}
      WHERE (SELECT all_of_them FROM fitting)
      ORDER BY r."requestId"
      ON CONFLICT DO NOTHING
      RETURNING "requestId", "itemId", quantity
    ),
    locked AS (
      UPDATE sale_items i SET available = available - w.units, locked = locked + w.units
      FROM (SELECT "itemId", sum(quantity) AS units FROM written GROUP BY "itemId") w
      WHERE i."saleId" = ${saleId} AND i.id = w."itemId"
    ),
    decided AS (
      UPDATE requests SET outcome = 'ORDERED', "decidedAt" = now()
      WHERE "saleId" = ${saleId} AND "requestId" = ANY(ARRAY(SELECT "requestId" FROM written)) AND "decidedAt" IS NULL
    ),
    moved AS (
      INSERT INTO stock_movements ("saleId", "itemId", "requestId", kind, quantity)
      SELECT ${saleId}, "itemId", "requestId", 'LOCK', quantity FROM written
    )
    SELECT (SELECT string_agg("requestId"::text, ',') FROM written) AS ids,
           string_agg(age::real::text, ',') AS ages, count(*)::int AS open
    FROM open`;
  const written = result?.ids?.split(",") ?? [];
  const left = (result?.open ?? 0) - written.length;
  return { requestIds: written, ages: left === 0 ? (result?.ages?.split(",").map(Number) ?? []) : [], left };
}
