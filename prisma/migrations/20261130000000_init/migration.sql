-- CreateSchema
CREATE SCHEMA IF NOT EXISTS "public";

-- CreateEnum
CREATE TYPE "SaleState" AS ENUM ('DRAFT', 'OPEN', 'PAUSED', 'CLOSED');

-- CreateEnum
CREATE TYPE "RequestOutcome" AS ENUM ('ORDERED', 'SOLD_OUT', 'FAILED');

-- CreateEnum
CREATE TYPE "ReservationReason" AS ENUM ('STOCK_GONE', 'PROCESSING_FAILED', 'CANCELLED_BY_BUYER', 'CANCELLED_BY_OPERATOR', 'PAYMENT_EXPIRED', 'REFUNDED');

-- CreateEnum
CREATE TYPE "OrderStatus" AS ENUM ('PENDING_PAYMENT', 'PAID', 'CANCELLED', 'EXPIRED', 'REFUND_PENDING', 'REFUNDED');

-- CreateEnum
CREATE TYPE "MovementKind" AS ENUM ('LOCK', 'SELL', 'RELEASE', 'REFUND_START', 'REFUND_DONE', 'WRITE_OFF', 'ADJUST');

-- CreateEnum
CREATE TYPE "PaymentOutcome" AS ENUM ('PAID', 'REFUND_DUE', 'AMOUNT_MISMATCH');

-- CreateEnum
CREATE TYPE "DeadLetterStatus" AS ENUM ('OPEN', 'REPLAYED', 'COMPENSATED', 'DISCARDED');

-- CreateTable
CREATE TABLE "sales" (
    "id" VARCHAR(64) NOT NULL,
    "title" TEXT NOT NULL,
    "state" "SaleState" NOT NULL DEFAULT 'DRAFT',
    "stateVersion" INTEGER NOT NULL DEFAULT 1,
    "pauseReason" TEXT,
    "opensAt" TIMESTAMPTZ(3) NOT NULL,
    "closesAt" TIMESTAMPTZ(3) NOT NULL,
    "maxPerBuyer" INTEGER NOT NULL DEFAULT 1,
    "paymentWindowSeconds" INTEGER NOT NULL DEFAULT 900,
    "epoch" INTEGER NOT NULL DEFAULT 0,
    "loadingUntil" TIMESTAMPTZ(3),
    "seqSeen" BIGINT NOT NULL DEFAULT 0,
    "createdAt" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updatedAt" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "sales_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "sale_items" (
    "saleId" VARCHAR(64) NOT NULL,
    "id" VARCHAR(64) NOT NULL,
    "position" INTEGER NOT NULL,
    "sku" VARCHAR(64) NOT NULL,
    "title" TEXT NOT NULL,
    "priceMinor" INTEGER NOT NULL,
    "currency" CHAR(3) NOT NULL,
    "initial" INTEGER NOT NULL,
    "available" INTEGER NOT NULL,
    "locked" INTEGER NOT NULL DEFAULT 0,
    "sold" INTEGER NOT NULL DEFAULT 0,
    "refundPending" INTEGER NOT NULL DEFAULT 0,

    CONSTRAINT "sale_items_pkey" PRIMARY KEY ("saleId","id")
);

-- CreateTable
CREATE TABLE "requests" (
    "saleId" VARCHAR(64) NOT NULL,
    "requestId" UUID NOT NULL,
    "buyerId" VARCHAR(64) NOT NULL,
    "itemId" VARCHAR(64) NOT NULL,
    "quantity" INTEGER NOT NULL,
    "epoch" INTEGER NOT NULL,
    "seq" BIGINT NOT NULL,
    "acceptedAt" TIMESTAMPTZ(3) NOT NULL,
    "journaledAt" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "dueAt" TIMESTAMPTZ(3) NOT NULL,
    "attempts" INTEGER NOT NULL DEFAULT 0,
    "queuedEpoch" INTEGER NOT NULL,
    "lastError" TEXT,
    "outcome" "RequestOutcome",
    "reason" "ReservationReason",
    "decidedAt" TIMESTAMPTZ(3),
    "parkedAt" TIMESTAMPTZ(3),

    CONSTRAINT "requests_pkey" PRIMARY KEY ("saleId","requestId")
);

-- CreateTable
CREATE TABLE "orders" (
    "saleId" VARCHAR(64) NOT NULL,
    "requestId" UUID NOT NULL,
    "buyerId" VARCHAR(64) NOT NULL,
    "activeBuyerId" VARCHAR(64),
    "itemId" VARCHAR(64) NOT NULL,
    "quantity" INTEGER NOT NULL,
    "totalMinor" INTEGER NOT NULL,
    "currency" CHAR(3) NOT NULL,
    "status" "OrderStatus" NOT NULL DEFAULT 'PENDING_PAYMENT',
    "createdAt" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updatedAt" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "payBy" TIMESTAMPTZ(3) NOT NULL,
    "paidAt" TIMESTAMPTZ(3),
    "paymentRef" VARCHAR(255),

    CONSTRAINT "orders_pkey" PRIMARY KEY ("saleId","requestId")
);

-- CreateTable
CREATE TABLE "stock_movements" (
    "saleId" VARCHAR(64) NOT NULL,
    "id" BIGSERIAL NOT NULL,
    "itemId" VARCHAR(64) NOT NULL,
    "requestId" UUID,
    "kind" "MovementKind" NOT NULL,
    "quantity" INTEGER NOT NULL,
    "createdAt" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "stock_movements_pkey" PRIMARY KEY ("saleId","id")
);

-- CreateTable
CREATE TABLE "request_events" (
    "saleId" VARCHAR(64) NOT NULL,
    "id" BIGSERIAL NOT NULL,
    "requestId" UUID NOT NULL,
    "epoch" INTEGER NOT NULL,
    "fromStage" VARCHAR(32) NOT NULL,
    "toStage" VARCHAR(32) NOT NULL,
    "reason" "ReservationReason",
    "units" INTEGER NOT NULL DEFAULT 0,
    "createdAt" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "appliedAt" TIMESTAMPTZ(3),
    "absorbed" BOOLEAN NOT NULL DEFAULT false,

    CONSTRAINT "request_events_pkey" PRIMARY KEY ("saleId","id")
);

-- CreateTable
CREATE TABLE "payments" (
    "paymentRef" VARCHAR(255) NOT NULL,
    "saleId" VARCHAR(64),
    "requestId" UUID,
    "orderId" VARCHAR(128) NOT NULL,
    "amountMinor" INTEGER NOT NULL,
    "outcome" "PaymentOutcome" NOT NULL,
    "createdAt" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "refundedAt" TIMESTAMPTZ(3),

    CONSTRAINT "payments_pkey" PRIMARY KEY ("paymentRef")
);

-- CreateTable
CREATE TABLE "dead_letters" (
    "saleId" VARCHAR(64) NOT NULL,
    "id" BIGSERIAL NOT NULL,
    "requestId" UUID NOT NULL,
    "stage" VARCHAR(32) NOT NULL,
    "lastError" TEXT NOT NULL,
    "attempts" INTEGER NOT NULL,
    "status" "DeadLetterStatus" NOT NULL DEFAULT 'OPEN',
    "createdAt" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "resolvedAt" TIMESTAMPTZ(3),

    CONSTRAINT "dead_letters_pkey" PRIMARY KEY ("saleId","id")
);

-- CreateTable
CREATE TABLE "audit_entries" (
    "id" BIGSERIAL NOT NULL,
    "saleId" VARCHAR(64),
    "actor" VARCHAR(64) NOT NULL,
    "action" VARCHAR(64) NOT NULL,
    "reason" TEXT,
    "details" JSONB NOT NULL DEFAULT '{}',
    "createdAt" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "audit_entries_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE INDEX "sales_createdAt_id_idx" ON "sales"("createdAt" DESC, "id" DESC);

-- CreateIndex
CREATE INDEX "sales_state_closesAt_idx" ON "sales"("state", "closesAt");

-- CreateIndex
CREATE UNIQUE INDEX "sale_items_saleId_sku_key" ON "sale_items"("saleId", "sku");

-- CreateIndex
CREATE INDEX "requests_saleId_buyerId_acceptedAt_idx" ON "requests"("saleId", "buyerId", "acceptedAt" DESC);

-- CreateIndex
CREATE INDEX "requests_undecided_idx" ON "requests"("saleId", "dueAt") WHERE (outcome IS NULL);

-- CreateIndex
CREATE INDEX "orders_buyerId_createdAt_requestId_idx" ON "orders"("buyerId", "createdAt" DESC, "requestId" DESC);

-- CreateIndex
CREATE INDEX "orders_status_payBy_idx" ON "orders"("status", "payBy");

-- CreateIndex
CREATE UNIQUE INDEX "orders_saleId_activeBuyerId_key" ON "orders"("saleId", "activeBuyerId");

-- CreateIndex
CREATE UNIQUE INDEX "stock_movements_saleId_requestId_kind_key" ON "stock_movements"("saleId", "requestId", "kind");

-- CreateIndex
CREATE INDEX "request_events_unapplied_idx" ON "request_events"("saleId", "id") WHERE ("appliedAt" IS NULL);

-- CreateIndex
CREATE UNIQUE INDEX "request_events_saleId_requestId_toStage_key" ON "request_events"("saleId", "requestId", "toStage");

-- CreateIndex
CREATE INDEX "payments_saleId_requestId_idx" ON "payments"("saleId", "requestId");

-- CreateIndex
CREATE INDEX "payments_outcome_createdAt_idx" ON "payments"("outcome", "createdAt");

-- CreateIndex
CREATE INDEX "dead_letters_status_createdAt_idx" ON "dead_letters"("status", "createdAt");

-- CreateIndex
CREATE INDEX "audit_entries_saleId_createdAt_idx" ON "audit_entries"("saleId", "createdAt" DESC);

-- From here on by hand: Prisma's schema has no word for what follows.

-- The ids that we make or accept keep to one alphabet, so that no store can fold, pad or mangle them.
ALTER TABLE "sales" ADD CONSTRAINT "sales_id_alphabet" CHECK ("id" ~ '^[A-Za-z0-9_-]{1,64}$');
ALTER TABLE "sale_items" ADD CONSTRAINT "sale_items_id_alphabet" CHECK ("id" ~ '^[A-Za-z0-9_-]{1,64}$');
ALTER TABLE "requests" ADD CONSTRAINT "requests_buyerId_alphabet" CHECK ("buyerId" ~ '^[A-Za-z0-9_-]{1,64}$');

-- A sale has a window that is open for some time, a limit that lets someone buy, and time to pay.
ALTER TABLE "sales" ADD CONSTRAINT "sales_window" CHECK ("closesAt" > "opensAt");
ALTER TABLE "sales" ADD CONSTRAINT "sales_maxPerBuyer_positive" CHECK ("maxPerBuyer" > 0);
ALTER TABLE "sales" ADD CONSTRAINT "sales_paymentWindowSeconds_positive" CHECK ("paymentWindowSeconds" > 0);

-- Invariant S. The sum is taken in bigint: in integer, four columns near the top would end in 'integer out of range'
-- instead of the name of the constraint. That none exceeds 2147483647 is what the type implies.
ALTER TABLE "sale_items" ADD CONSTRAINT "sale_items_stock_adds_up"
    CHECK ("initial" = "available"::bigint + "locked" + "sold" + "refundPending");
ALTER TABLE "sale_items" ADD CONSTRAINT "sale_items_initial_not_negative" CHECK ("initial" >= 0);
ALTER TABLE "sale_items" ADD CONSTRAINT "sale_items_available_not_negative" CHECK ("available" >= 0);
ALTER TABLE "sale_items" ADD CONSTRAINT "sale_items_locked_not_negative" CHECK ("locked" >= 0);
ALTER TABLE "sale_items" ADD CONSTRAINT "sale_items_sold_not_negative" CHECK ("sold" >= 0);
ALTER TABLE "sale_items" ADD CONSTRAINT "sale_items_refundPending_not_negative" CHECK ("refundPending" >= 0);
ALTER TABLE "sale_items" ADD CONSTRAINT "sale_items_priceMinor_not_negative" CHECK ("priceMinor" >= 0);

-- A request is decided with a time or not at all: `UPDATE … WHERE outcome IS NULL` is how deciders meet.
ALTER TABLE "requests" ADD CONSTRAINT "requests_quantity_positive" CHECK ("quantity" > 0);
ALTER TABLE "requests" ADD CONSTRAINT "requests_decided_with_time" CHECK (("outcome" IS NULL) = ("decidedAt" IS NULL));

-- Invariant U is the unique index on ("saleId", "activeBuyerId"): it holds only while a valid order, and no other,
-- carries its own buyer there.
ALTER TABLE "orders" ADD CONSTRAINT "orders_quantity_positive" CHECK ("quantity" > 0);
ALTER TABLE "orders" ADD CONSTRAINT "orders_totalMinor_not_negative" CHECK ("totalMinor" >= 0);
ALTER TABLE "orders" ADD CONSTRAINT "orders_active_while_valid"
    CHECK (("activeBuyerId" IS NOT NULL) = ("status" IN ('PENDING_PAYMENT', 'PAID', 'REFUND_PENDING')));
ALTER TABLE "orders" ADD CONSTRAINT "orders_active_is_buyer" CHECK ("activeBuyerId" IS NULL OR "activeBuyerId" = "buyerId");

-- Events give units back or none; they never take any.
ALTER TABLE "request_events" ADD CONSTRAINT "request_events_units_not_negative" CHECK ("units" >= 0);

-- stock_movements is append-only, so that the five stock columns can be added up again from it.
-- TRUNCATE stays possible: tests and a reset empty whole tables, and it can't falsify a single row.
CREATE FUNCTION "refuse_change_of_stock_movements"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'stock_movements is append-only: % refused', TG_OP USING ERRCODE = 'restrict_violation';
END;
$$;
CREATE TRIGGER "stock_movements_append_only"
    BEFORE UPDATE OR DELETE ON "stock_movements"
    FOR EACH STATEMENT EXECUTE FUNCTION "refuse_change_of_stock_movements"();
