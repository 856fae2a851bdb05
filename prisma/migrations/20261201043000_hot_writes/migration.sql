-- DropIndex
DROP INDEX "requests_saleId_buyerId_acceptedAt_idx";

-- CreateIndex
CREATE INDEX "requests_buyerId_saleId_acceptedAt_idx" ON "requests"("buyerId", "saleId", "acceptedAt" DESC);

-- From here on by hand: Prisma's schema has no word for what follows.

-- The sale's fence (src/db/fence.ts) and the epoch that it protects, in one call. Each statement of a VOLATILE function sees
-- what was committed before that statement, and not before the call: so the epoch is never older than the fence, though
-- whoever calls this may have waited for a load.
CREATE FUNCTION "epoch_under_fence"("sale" TEXT) RETURNS INTEGER LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    found INTEGER;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtextextended('sluice:fence:' || "sale", 0));
    SELECT epoch INTO found FROM sales WHERE id = "sale";
    RETURN found;
END;
$$;
