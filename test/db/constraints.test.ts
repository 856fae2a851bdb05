import { beforeAll, describe, expect, it } from "vitest";
import { createTestDatabase } from "../support/database.js";
import { query } from "../support/sql.js";

const REQUEST = "00000000-0000-4000-8000-000000000001";

/** Rows that the database accepts; each test changes one value of one. */
const VALID = {
  sales: { id: "sale-1", title: "A sale", opensAt: "2026-11-30T10:00:00Z", closesAt: "2026-11-30T11:00:00Z" },
  sale_items: {
    ...{
      saleId: "sale-1",
      id: "item-1",
      position: 0,
      sku: "sku-1",
      title: "A thing",
      priceMinor: 100,
      currency: "EUR",
    },
    ...{ initial: 10, available: 4, locked: 3, sold: 2, refundPending: 1 },
  },
  requests: {
    ...{ saleId: "sale-1", requestId: REQUEST, buyerId: "buyer_1", itemId: "item-1", quantity: 1, epoch: 1, seq: 1 },
    ...{ acceptedAt: "2026-11-30T10:00:00Z", dueAt: "2026-11-30T10:00:30Z", queuedEpoch: 1 },
  },
  orders: {
    ...{ saleId: "sale-1", requestId: REQUEST, buyerId: "buyer_1", activeBuyerId: "buyer_1", itemId: "item-1" },
    ...{ quantity: 1, totalMinor: 100, currency: "EUR", payBy: "2026-11-30T10:15:00Z" },
  },
  request_events: { saleId: "sale-1", requestId: REQUEST, epoch: 1, fromStage: "A", toStage: "B" },
  payments: { paymentRef: "pay_1", orderId: `sale-1.${REQUEST}`, amountMinor: 100, outcome: "PAID" },
  stock_movements: { saleId: "sale-1", itemId: "item-1", requestId: REQUEST, kind: "LOCK", quantity: 1 },
};
const PAID = { paidAt: "2026-11-30T10:01:00Z", paymentRef: "pay_1" };
const DUE = { refundDueAt: "2026-11-30T10:02:00Z" };
type Table = keyof typeof VALID;

let url: string;
beforeAll(async () => {
  url = (await createTestDatabase()).url;
});

/** Inserts a valid row, but for `change`. */
async function insert(table: Table, change: Record<string, unknown> = {}): Promise<void> {
  const row = { ...VALID[table], ...change };
  const columns = Object.keys(row).map((column) => `"${column}"`);
  const values = Object.keys(row).map((_, at) => `$${at + 1}`);
  await query(url, `INSERT INTO ${table} (${columns}) VALUES (${values})`, Object.values(row));
}

const empty = () => query(url, `TRUNCATE ${Object.keys(VALID).join()}`);

describe("the database accepts", () => {
  it.each(Object.keys(VALID) as Table[])("a valid row of %s", async (table) => {
    await empty();
    await insert(table);
  });

  it.each([
    ["sale_items", { initial: 2_147_483_647, available: 2_147_483_647, locked: 0, sold: 0, refundPending: 0 }],
    ["requests", { outcome: "FAILED", decidedAt: "2026-11-30T10:00:01Z" }],
    ["orders", { activeBuyerId: null, status: "CANCELLED", reason: "CANCELLED_BY_BUYER" }],
    ["orders", { status: "REFUND_PENDING", totalMinor: 0, ...PAID }],
    ["payments", { outcome: "REFUND_DUE", ...DUE }],
    ["payments", { ...DUE, refundRef: "ref_1", refundedAt: "2026-11-30T10:05:00Z" }],
    ["sales", { id: "A".repeat(64) }],
  ] as const)("%s with %o", async (table, change) => {
    await empty();
    await insert(table, change);
  });
});

describe("the database refuses", () => {
  it.each([
    ["sales", { id: "sale.1" }, "sales_id_alphabet"],
    ["sales", { id: "" }, "sales_id_alphabet"],
    ["sales", { id: "sale-1\n" }, "sales_id_alphabet"],
    ["sales", { closesAt: VALID.sales.opensAt }, "sales_window"],
    ["sales", { maxPerBuyer: 0 }, "sales_maxPerBuyer_positive"],
    ["sales", { paymentWindowSeconds: 0 }, "sales_paymentWindowSeconds_positive"],
    ["sale_items", { id: "é" }, "sale_items_id_alphabet"],
    ["sale_items", { priceMinor: -1 }, "sale_items_priceMinor_not_negative"],
    ["sale_items", { initial: 11 }, "sale_items_stock_adds_up"],
    ["sale_items", { available: 5 }, "sale_items_stock_adds_up"],
    ["sale_items", { available: 2_147_483_647 }, "sale_items_stock_adds_up"],
    ["sale_items", { initial: -1, available: -7 }, "sale_items_(initial|available)_not_negative"],
    ["sale_items", { initial: 5, available: -1 }, "sale_items_available_not_negative"],
    ["sale_items", { initial: 6, locked: -1 }, "sale_items_locked_not_negative"],
    ["sale_items", { initial: 7, sold: -1 }, "sale_items_sold_not_negative"],
    ["sale_items", { initial: 8, refundPending: -1 }, "sale_items_refundPending_not_negative"],
    ["requests", { quantity: 0 }, "requests_quantity_positive"],
    ["requests", { buyerId: "a b" }, "requests_buyerId_alphabet"],
    ["requests", { outcome: "ORDERED" }, "requests_decided_with_time"],
    ["requests", { decidedAt: "2026-11-30T10:00:01Z" }, "requests_decided_with_time"],
    ["orders", { quantity: 0 }, "orders_quantity_positive"],
    ["orders", { totalMinor: -1 }, "orders_totalMinor_not_negative"],
    ["orders", { activeBuyerId: "buyer_2" }, "orders_active_is_buyer"],
    ["orders", { activeBuyerId: null }, "orders_active_while_valid"],
    ["orders", { activeBuyerId: null, status: "PAID" }, "orders_active_while_valid"],
    ["orders", { activeBuyerId: null, status: "REFUND_PENDING" }, "orders_active_while_valid"],
    ["orders", { status: "CANCELLED" }, "orders_active_while_valid"],
    ["orders", { status: "EXPIRED" }, "orders_active_while_valid"],
    ["orders", { status: "REFUNDED" }, "orders_active_while_valid"],
    ["orders", { activeBuyerId: null, status: "EXPIRED" }, "orders_ended_with_reason"],
    ["orders", { reason: "REFUNDED" }, "orders_ended_with_reason"],
    ["orders", { status: "PAID" }, "orders_paid_with_reference"],
    ["orders", PAID, "orders_paid_with_reference"],
    ["payments", { outcome: "AMOUNT_MISMATCH" }, "payments_useless_to_refund"],
    ["payments", { ...DUE, refundRef: "ref_1" }, "payments_refunded_with_reference"],
    ["payments", { refundRef: "ref_1", refundedAt: "2026-11-30T10:05:00Z" }, "payments_refunded_when_due"],
    ["payments", { amountMinor: -1 }, "payments_amountMinor_not_negative"],
    ["request_events", { units: -1 }, "request_events_units_not_negative"],
  ] as const)("%s with %o: %s", async (table, change, constraint) => {
    await empty();
    await expect(insert(table, change)).rejects.toThrow(new RegExp(`check constraint "${constraint}"`));
  });

  it("a second valid order of a buyer in a sale", async () => {
    await empty();
    await insert("orders");
    const requestId = REQUEST.replace(/1$/, "2");
    await expect(insert("orders", { requestId })).rejects.toThrow("orders_saleId_activeBuyerId_key");
    await insert("orders", { requestId, activeBuyerId: null, status: "EXPIRED", reason: "PAYMENT_EXPIRED" });
  });

  it("to change or delete a stock movement; emptying the whole table is allowed", async () => {
    await empty();
    await insert("stock_movements");
    await expect(query(url, "UPDATE stock_movements SET quantity = 2")).rejects.toThrow("append-only: UPDATE refused");
    await expect(query(url, "DELETE FROM stock_movements")).rejects.toThrow("append-only: DELETE refused");
    await query(url, "TRUNCATE stock_movements");
  });
});
