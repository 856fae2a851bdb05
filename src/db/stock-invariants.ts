/** What the database tells of the invariant S, each question by its intent. Reads only; writes nothing, locks nothing. */
import type { Tx } from "./client.js";
import { bounded, type CountedOffender, OFFENDERS_AT_MOST, type Offenders } from "./offenders.js";

/** S: items whose units don't add up, or are fewer than none somewhere. */
export async function findUnbalancedItems(tx: Tx, saleId: string): Promise<Offenders> {
  return bounded(tx.$queryRaw<CountedOffender[]>`
    SELECT id, initial AS expected,
           concat_ws(' + ', available, locked, sold, "refundPending") AS actual, count(*) OVER ()::int AS total
    FROM sale_items
    WHERE "saleId" = ${saleId}
      AND (initial <> available::bigint + locked + sold + "refundPending"
           OR least(available, locked, sold, "refundPending") < 0)
    ORDER BY id LIMIT ${OFFENDERS_AT_MOST}`);
}

/** S: items that keep other units locked, sold or waiting for a refund than their orders have. */
export async function findItemsUnlikeTheirOrders(tx: Tx, saleId: string): Promise<Offenders> {
  return bounded(tx.$queryRaw<CountedOffender[]>`
    SELECT id, concat_ws(' ', ordered, place) AS expected, concat_ws(' ', kept, place) AS actual,
           count(*) OVER ()::int AS total
    FROM (
      SELECT i.id, k.place, k.kept, coalesce(sum(o.quantity), 0)::int AS ordered
      FROM sale_items i
      CROSS JOIN LATERAL (VALUES
        ('locked', 'PENDING_PAYMENT', i.locked), ('sold', 'PAID', i.sold),
        ('to be refunded', 'REFUND_PENDING', i."refundPending")
      ) AS k(place, status, kept)
      LEFT JOIN orders o ON o."saleId" = i."saleId" AND o."itemId" = i.id AND o.status::text = k.status
      WHERE i."saleId" = ${saleId}
      GROUP BY i.id, k.place, k.kept
    ) compared
    WHERE ordered <> kept
    ORDER BY id, place LIMIT ${OFFENDERS_AT_MOST}`);
}

/** S: items that have other units in their columns than their movements add up to. */
export async function findItemsUnlikeTheirMovements(tx: Tx, saleId: string): Promise<Offenders> {
  return bounded(tx.$queryRaw<CountedOffender[]>`
    SELECT id, concat_ws(' ', moved, place) AS expected, concat_ws(' ', kept, place) AS actual,
           count(*) OVER ()::int AS total
    FROM (
      SELECT i.id, k.place, k.kept, coalesce(sum(m.quantity * CASE
               WHEN m.kind::text = ANY(k.adding) THEN 1 WHEN m.kind::text = ANY(k.taking) THEN -1 ELSE 0
             END), 0)::bigint AS moved
      FROM sale_items i
      CROSS JOIN LATERAL (VALUES
        ('put on sale', ARRAY['ADJUST'], ARRAY['WRITE_OFF'], i.initial),
        ('locked', ARRAY['LOCK'], ARRAY['SELL', 'RELEASE'], i.locked),
        ('sold', ARRAY['SELL'], ARRAY['REFUND_START'], i.sold),
        ('to be refunded', ARRAY['REFUND_START'], ARRAY['REFUND_DONE', 'WRITE_OFF'], i."refundPending")
      ) AS k(place, adding, taking, kept)
      LEFT JOIN stock_movements m ON m."saleId" = i."saleId" AND m."itemId" = i.id
      WHERE i."saleId" = ${saleId}
      GROUP BY i.id, k.place, k.kept
    ) compared
    WHERE moved <> kept
    ORDER BY id, place LIMIT ${OFFENDERS_AT_MOST}`);
}

/** S: orders whose units were moved otherwise than their status tells, and movements of no order. */
export async function findOrdersUnlikeTheirMovements(tx: Tx, saleId: string): Promise<Offenders> {
  return bounded(tx.$queryRaw<CountedOffender[]>`
    SELECT "requestId" AS id, coalesce(o.story, 'nothing') AS expected, coalesce(m.story, 'nothing') AS actual,
           count(*) OVER ()::int AS total
    FROM (
      SELECT "requestId", (
        SELECT string_agg(concat_ws(' ', quantity, kind), ', ' ORDER BY position)
        FROM unnest(string_to_array('LOCK ' || CASE status::text
          WHEN 'PAID' THEN 'SELL' WHEN 'CANCELLED' THEN 'RELEASE' WHEN 'EXPIRED' THEN 'RELEASE'
          WHEN 'REFUND_PENDING' THEN 'SELL REFUND_START' WHEN 'REFUNDED' THEN 'SELL REFUND_START REFUND_END' ELSE ''
        END, ' ')) WITH ORDINALITY AS k(kind, position)
        WHERE kind <> ''
      ) AS story
      FROM orders WHERE "saleId" = ${saleId}
    ) o
    FULL JOIN (
      SELECT "requestId", string_agg(concat_ws(' ', quantity, CASE
               WHEN kind IN ('REFUND_DONE', 'WRITE_OFF') THEN 'REFUND_END' ELSE kind::text
             END), ', ' ORDER BY kind) AS story
      FROM stock_movements WHERE "saleId" = ${saleId} AND "requestId" IS NOT NULL GROUP BY "requestId"
    ) m USING ("requestId")
    WHERE o.story IS DISTINCT FROM m.story
    ORDER BY "requestId" LIMIT ${OFFENDERS_AT_MOST}`);
}

/** S: orders that were sold without their money, money that bought nothing, and refunds that only one of the two knows of. */
export async function findOrdersUnlikeTheirPayments(tx: Tx, saleId: string): Promise<Offenders> {
  return bounded(tx.$queryRaw<CountedOffender[]>`
    SELECT "requestId" AS id, coalesce(o.story, 'no money') AS expected, coalesce(p.story, 'no money') AS actual,
           count(*) OVER ()::int AS total
    FROM (
      SELECT "requestId", concat_ws(' ', "totalMinor", 'by', "paymentRef", CASE status::text
               WHEN 'REFUND_PENDING' THEN 'to be given back' WHEN 'REFUNDED' THEN 'given back' ELSE 'kept'
             END) AS story
      FROM orders WHERE "saleId" = ${saleId} AND status IN ('PAID', 'REFUND_PENDING', 'REFUNDED')
    ) o
    FULL JOIN (
      SELECT "requestId", string_agg(concat_ws(' ', "amountMinor", 'by', "paymentRef", CASE
               WHEN "refundedAt" IS NOT NULL THEN 'given back' WHEN "refundDueAt" IS NOT NULL THEN 'to be given back'
               ELSE 'kept'
             END), ', ' ORDER BY "paymentRef") AS story
      FROM payments WHERE "saleId" = ${saleId} AND outcome = 'PAID' GROUP BY "requestId"
    ) p USING ("requestId")
    WHERE o.story IS DISTINCT FROM p.story
    ORDER BY "requestId" LIMIT ${OFFENDERS_AT_MOST}`);
}
