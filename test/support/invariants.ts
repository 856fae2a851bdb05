import { Redis } from "ioredis";
import { query } from "./sql.js";
import { waitFor } from "./wait.js";

/** What the two stores say of one sale, each breach in words. Empty where S, U, C and T hold. */
export async function findBreaches(databaseUrl: string, redisUrl: string, saleId: string): Promise<string[]> {
  const breaches: string[] = [];
  const rows = <Row extends object>(sql: string) => query<Row & Record<string, unknown>>(databaseUrl, sql, [saleId]);

  // S: every unit is in one column, and the movements tell the same story.
  for (const item of await rows<{ id: string }>(
    `SELECT id FROM sale_items WHERE "saleId" = $1 AND (initial <> available + locked + sold + "refundPending"
       OR least(available, locked, sold, "refundPending") < 0)`,
  )) {
    breaches.push(`S: the stock columns of ${item.id} don't add up`);
  }
  for (const item of await rows<{ id: string; locked: number; held: number }>(
    `SELECT i.id, i.locked, coalesce(sum(o.quantity), 0)::int AS held
     FROM sale_items i
     LEFT JOIN orders o ON o."saleId" = i."saleId" AND o."itemId" = i.id AND o.status = 'PENDING_PAYMENT'
     WHERE i."saleId" = $1 GROUP BY i.id, i.locked HAVING i.locked <> coalesce(sum(o.quantity), 0)`,
  )) {
    breaches.push(`S: ${item.id} has ${item.locked} units locked, its unpaid orders hold ${item.held}`);
  }
  for (const order of await rows<{ requestId: string }>(
    `SELECT o."requestId" FROM orders o
     LEFT JOIN stock_movements m ON m."saleId" = o."saleId" AND m."requestId" = o."requestId" AND m.kind = 'LOCK'
     WHERE o."saleId" = $1 AND m.quantity IS DISTINCT FROM o.quantity`,
  )) {
    breaches.push(`S: the order ${order.requestId} has no movement of its units`);
  }
  // U: one valid order a buyer, of no more than the limit; each order belongs to a request that was decided so.
  for (const buyer of await rows<{ buyerId: string }>(
    `SELECT o."buyerId" FROM orders o JOIN sales s ON s.id = o."saleId"
     WHERE o."saleId" = $1 AND o.status IN ('PENDING_PAYMENT', 'PAID', 'REFUND_PENDING')
     GROUP BY o."buyerId", s."maxPerBuyer" HAVING count(*) > 1 OR sum(o.quantity) > s."maxPerBuyer"`,
  )) {
    breaches.push(`U: ${buyer.buyerId} has more than is allowed`);
  }
  for (const request of await rows<{ requestId: string }>(
    `SELECT coalesce(r."requestId", o."requestId") AS "requestId"
     FROM (SELECT * FROM requests WHERE "saleId" = $1) r
     FULL JOIN (SELECT * FROM orders WHERE "saleId" = $1) o USING ("saleId", "requestId")
     WHERE (r.outcome = 'ORDERED') IS DISTINCT FROM (o.status IS NOT NULL) AND (r.outcome IS NOT NULL OR o.status IS NOT NULL)`,
  )) {
    breaches.push(`U: request and order ${request.requestId} tell different stories`);
  }
  // C: what Redis offers is what the database has promised to nobody.
  const expected = await rows<{ id: string; units: number }>(
    `SELECT i.id, (i.available
        - coalesce((SELECT sum(quantity) FROM requests r WHERE r."saleId" = $1 AND r."itemId" = i.id AND r.outcome IS NULL), 0)
        - coalesce((SELECT sum(e.units) FROM request_events e JOIN requests r USING ("saleId", "requestId")
                    WHERE e."saleId" = $1 AND r."itemId" = i.id AND e."appliedAt" IS NULL), 0))::int AS units
     FROM sale_items i WHERE i."saleId" = $1`,
  );
  const client = new Redis(redisUrl, { maxRetriesPerRequest: 1 });
  try {
    const stock = await client.hgetall(`sluice:{${saleId}}:stock`);
    for (const { id, units } of expected) {
      if (stock[id] !== String(units))
        breaches.push(`C: Redis offers ${stock[id]} of ${id}, the database has ${units}`);
    }
    // T: nothing is waiting that nobody works on.
    const pending = (await client.zcard(`sluice:{${saleId}}:pending`)) - 1;
    if (pending > 0) breaches.push(`T: ${pending} requests are still pending in Redis`);
  } finally {
    client.disconnect();
  }
  for (const { count } of await rows<{ count: number }>(
    `SELECT count(*)::int AS count FROM requests WHERE "saleId" = $1 AND outcome IS NULL`,
  )) {
    if (count > 0) breaches.push(`T: ${count} requests are undecided`);
  }
  return breaches;
}

/** Waits until everything accepted is decided and told to Redis, then checks S, U, C and T. */
export async function settleAndCheck(
  databaseUrl: string,
  redisUrl: string,
  saleId: string,
  timeoutMs = 60_000,
): Promise<void> {
  await waitFor(
    async () => {
      const breaches = await findBreaches(databaseUrl, redisUrl, saleId);
      if (breaches.length > 0) throw new Error(breaches.join("; "));
      return true;
    },
    { what: "S, U, C and T to hold", timeoutMs },
  );
}
