/** What the database tells of the invariants U, C and T, each question by its intent. Reads only; writes nothing, locks nothing. */
import type { Database, Tx } from "./client.js";
import { readEpoch } from "./fence.js";
import { bounded, type CountedOffender, OFFENDERS_AT_MOST, type Offenders } from "./offenders.js";
import { measureUnfinishedWork } from "./unfinished.js";

/** Runs `body` in one snapshot: all that it reads is of one moment, however the sale moves meanwhile. */
export async function inSnapshot<Result>(db: Database, body: (tx: Tx) => Promise<Result>): Promise<Result> {
  return db.$transaction(
    async (tx) => {
      await tx.$executeRaw`SET TRANSACTION READ ONLY`;
      return body(tx);
    },
    { isolationLevel: "RepeatableRead" },
  );
}

/** U: buyers with more than one valid order. */
export async function findBuyersWithSeveralOrders(tx: Tx, saleId: string): Promise<Offenders> {
  return bounded(tx.$queryRaw<CountedOffender[]>`
    SELECT "buyerId" AS id, 1 AS expected, count(*)::int AS actual, count(*) OVER ()::int AS total
    FROM orders
    WHERE "saleId" = ${saleId} AND status IN ('PENDING_PAYMENT', 'PAID', 'REFUND_PENDING')
    GROUP BY "buyerId" HAVING count(*) > 1
    ORDER BY "buyerId" LIMIT ${OFFENDERS_AT_MOST}`);
}

/** U: buyers whose valid orders have more units than the sale gives to one. */
export async function findBuyersAboveTheLimit(tx: Tx, saleId: string): Promise<Offenders> {
  return bounded(tx.$queryRaw<CountedOffender[]>`
    SELECT o."buyerId" AS id, s."maxPerBuyer" AS expected, sum(o.quantity)::int AS actual, count(*) OVER ()::int AS total
    FROM orders o JOIN sales s ON s.id = o."saleId"
    WHERE o."saleId" = ${saleId} AND o.status IN ('PENDING_PAYMENT', 'PAID', 'REFUND_PENDING')
    GROUP BY o."buyerId", s."maxPerBuyer" HAVING sum(o.quantity) > s."maxPerBuyer"
    ORDER BY o."buyerId" LIMIT ${OFFENDERS_AT_MOST}`);
}

/** U: requests decided to be ordered that have no order, and orders that no request was decided to become. */
export async function findOrdersUnlikeTheirRequests(tx: Tx, saleId: string): Promise<Offenders> {
  return bounded(tx.$queryRaw<CountedOffender[]>`
    SELECT "requestId" AS id, coalesce(r.contents, 'no order') AS expected, coalesce(o.contents, 'no order') AS actual,
           count(*) OVER ()::int AS total
    FROM (
      SELECT "requestId", concat_ws(' ', quantity, 'of', "itemId", 'for', "buyerId") AS contents
      FROM requests WHERE "saleId" = ${saleId} AND outcome = 'ORDERED'
    ) r
    FULL JOIN (
      SELECT "requestId", concat_ws(' ', quantity, 'of', "itemId", 'for', "buyerId") AS contents
      FROM orders WHERE "saleId" = ${saleId}
    ) o USING ("requestId")
    WHERE r.contents IS DISTINCT FROM o.contents
    ORDER BY "requestId" LIMIT ${OFFENDERS_AT_MOST}`);
}

/** T: requests that have been waiting for their end for longer than `boundMs`, the oldest first. */
export async function findOverdueRequests(tx: Tx, saleId: string, boundMs: number): Promise<Offenders> {
  return bounded(tx.$queryRaw<CountedOffender[]>`
    SELECT "requestId" AS id, 'decided' AS expected,
           'waiting for ' || round(extract(epoch FROM clock_timestamp() - "journaledAt")) || ' s' AS actual,
           count(*) OVER ()::int AS total
    FROM requests
    WHERE "saleId" = ${saleId} AND outcome IS NULL AND (${boundMs} = 0 OR "parkedAt" IS NULL)
      AND "journaledAt" <= clock_timestamp() - ${boundMs} * interval '1 millisecond'
    ORDER BY "journaledAt", "requestId" LIMIT ${OFFENDERS_AT_MOST}`);
}

/** An item's units, as orders and promises have them. */
export interface ItemUnits {
  readonly itemId: string;
  readonly initial: number;
  /** units of valid orders */
  readonly ordered: number;
  /** C: what Redis must be offering while nothing is between the two stores */
  readonly offered: number;
}

/** The units of each item: what its valid orders have, and what was promised to nobody. */
export async function readItemUnits(tx: Tx, saleId: string): Promise<ItemUnits[]> {
  return tx.$queryRaw<ItemUnits[]>`
    WITH ordered AS (
      SELECT "itemId", sum(quantity) AS units FROM orders
      WHERE "saleId" = ${saleId} AND status IN ('PENDING_PAYMENT', 'PAID', 'REFUND_PENDING') GROUP BY "itemId"
    ), undecided AS (
      SELECT "itemId", sum(quantity) AS units FROM requests
      WHERE "saleId" = ${saleId} AND outcome IS NULL GROUP BY "itemId"
    ), unapplied AS (
      SELECT r."itemId", sum(e.units) AS units
      FROM request_events e JOIN requests r ON r."saleId" = e."saleId" AND r."requestId" = e."requestId"
      JOIN sales s ON s.id = e."saleId"
      WHERE e."saleId" = ${saleId} AND e."appliedAt" IS NULL AND e.epoch >= s.epoch GROUP BY r."itemId"
    )
    SELECT i.id AS "itemId", i.initial, coalesce(o.units, 0)::int AS ordered,
           (i.available - coalesce(u.units, 0) - coalesce(e.units, 0))::int AS offered
    FROM sale_items i
    LEFT JOIN ordered o ON o."itemId" = i.id
    LEFT JOIN undecided u ON u."itemId" = i.id
    LEFT JOIN unapplied e ON e."itemId" = i.id
    WHERE i."saleId" = ${saleId}
    ORDER BY i.position, i.id`;
}

/** What is on its way in a sale, and the epoch that it is in. */
export interface Unfinished {
  readonly epoch: number;
  readonly undecided: number;
  /** those of the undecided that wait for an operator, and not in line */
  readonly parked: number;
  readonly eventsNotApplied: number;
}

/** Counts what has no end yet; null where there is no such sale. */
export async function countUnfinished(tx: Tx, saleId: string): Promise<Unfinished | null> {
  const epoch = await readEpoch(tx, saleId);
  const work = (await measureUnfinishedWork(tx, [saleId])).get(saleId);
  if (epoch === null || !work) return null;
  return { epoch, undecided: work.undecided, parked: work.parked, eventsNotApplied: work.unappliedEvents };
}
