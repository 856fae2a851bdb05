-- DropIndex
DROP INDEX "audit_entries_saleId_createdAt_idx";

-- DropIndex
DROP INDEX "orders_status_payBy_idx";

-- DropIndex
DROP INDEX "payments_outcome_createdAt_idx";

-- DropIndex
DROP INDEX "request_events_unapplied_idx";

-- AlterTable
ALTER TABLE "orders" ADD COLUMN     "reason" "ReservationReason";

-- AlterTable
ALTER TABLE "payments" ADD COLUMN     "refundDueAt" TIMESTAMPTZ(3),
ADD COLUMN     "refundRef" VARCHAR(255);

-- CreateIndex
CREATE INDEX "audit_entries_saleId_createdAt_id_idx" ON "audit_entries"("saleId", "createdAt" DESC, "id" DESC);

-- CreateIndex
CREATE INDEX "audit_entries_createdAt_id_idx" ON "audit_entries"("createdAt" DESC, "id" DESC);

-- CreateIndex
CREATE INDEX "orders_saleId_createdAt_requestId_idx" ON "orders"("saleId", "createdAt" DESC, "requestId" DESC);

-- CreateIndex
CREATE INDEX "orders_unpaid_idx" ON "orders"("payBy", "saleId") WHERE (status = 'PENDING_PAYMENT');

-- CreateIndex
CREATE INDEX "request_events_unapplied_idx" ON "request_events"("saleId", "epoch", "id") WHERE ("appliedAt" IS NULL);

-- CreateIndex
CREATE UNIQUE INDEX "payments_refundRef_key" ON "payments"("refundRef");

-- CreateIndex
CREATE INDEX "payments_to_refund_idx" ON "payments"("refundDueAt", "paymentRef") WHERE ("refundDueAt" IS NOT NULL AND "refundedAt" IS NULL);


-- What Prisma's schema has no word for.

ALTER TABLE "orders" ADD CONSTRAINT "orders_ended_with_reason"
    CHECK (("reason" IS NOT NULL) = ("status" IN ('CANCELLED', 'EXPIRED', 'REFUNDED')));
ALTER TABLE "orders" ADD CONSTRAINT "orders_paid_with_reference"
    CHECK (("paymentRef" IS NOT NULL AND "paidAt" IS NOT NULL) = ("status" IN ('PAID', 'REFUND_PENDING', 'REFUNDED')));
-- Money that could not buy is to be given back from the moment it is on record.
ALTER TABLE "payments" ADD CONSTRAINT "payments_useless_to_refund" CHECK ("outcome" = 'PAID' OR "refundDueAt" IS NOT NULL);
ALTER TABLE "payments" ADD CONSTRAINT "payments_refunded_with_reference"
    CHECK (("refundRef" IS NOT NULL) = ("refundedAt" IS NOT NULL));
ALTER TABLE "payments" ADD CONSTRAINT "payments_refunded_when_due" CHECK ("refundedAt" IS NULL OR "refundDueAt" IS NOT NULL);
ALTER TABLE "payments" ADD CONSTRAINT "payments_amountMinor_not_negative" CHECK ("amountMinor" >= 0);

-- Every unit on sale came by a movement, so that movements add up to the stock by themselves. Of the sales that were made
-- before, this is the one.
INSERT INTO "stock_movements" ("saleId", "itemId", "kind", "quantity")
SELECT "saleId", "id", 'ADJUST', "initial" FROM "sale_items" ORDER BY "saleId", "id";
