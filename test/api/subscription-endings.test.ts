import { randomUUID } from "node:crypto";
import { beforeAll, describe, expect, it } from "vitest";
import { type Api, prepareSluice, reserve, type TestSale, type TestSluice } from "../support/sluice.js";
import { query } from "../support/sql.js";
import { subscribe, TRANSPORTS, type Transport } from "../support/subscriptions.js";

interface Value {
  readonly status: string;
  readonly reasonCode: string | null;
  readonly reason: string | null;
}

let sluice: TestSluice;
let api: Api;

beforeAll(async () => {
  sluice = await prepareSluice();
  [api] = await Promise.all([sluice.startApi(), sluice.startWorker()]);
});

describe.each(TRANSPORTS)("over %s a subscription ends with the reason", (transport) => {
  it("SOLD_OUT where the database has less than Redis promised", async () => {
    const sale = await sluice.createSale(api);
    await sql(`UPDATE sale_items SET available = 0, sold = initial WHERE "saleId" = $1`, [sale.id]);
    const { values, done } = await reserveAndWatch(transport, sale, "ann");
    expect(await done).toEqual({ kind: "completed" });
    expect(values.at(-1)).toMatchObject({ status: "SOLD_OUT", reasonCode: "STOCK_GONE" });
    expect(values.at(-1)?.reason).toContain("gone");
  });

  it("FAILED where the buyer turns out to have an order already", async () => {
    const sale = await sluice.createSale(api);
    const [saleId, itemId] = [sale.id, sale.items[0]?.id];
    await sql(
      `INSERT INTO orders ("saleId", "requestId", "buyerId", "activeBuyerId", "itemId", quantity, "totalMinor", currency, "payBy")
       VALUES ($1, $2, 'bob', 'bob', $3, 1, 2500, 'EUR', now() + interval '1 hour')`,
      [saleId, randomUUID(), itemId],
    );
    const { values, done } = await reserveAndWatch(transport, sale, "bob");
    expect(await done).toEqual({ kind: "completed" });
    expect(values.at(-1)).toMatchObject({ status: "FAILED", reasonCode: "PROCESSING_FAILED" });
    expect(values.at(-1)?.reason).not.toBe("");
  });
});

async function reserveAndWatch(transport: Transport, sale: TestSale, subject: string) {
  const token = await sluice.token("buyer", subject);
  const requestId = randomUUID();
  const answer = await reserve(api, token, sale, { requestId });
  expect(answer.data?.reserve.status).toBe("QUEUED");
  const operation = `subscription ($s: ID!, $r: UUID!) {
    reservationUpdates(saleId: $s, requestId: $r) { status reasonCode reason }
  }`;
  return subscribe<Value>(transport, api, token, { query: operation, variables: { s: sale.id, r: requestId } });
}

function sql(statement: string, values: unknown[]) {
  return query(sluice.databaseUrl, statement, values);
}
