-- CreateIndex
CREATE INDEX "dead_letters_saleId_createdAt_id_idx" ON "dead_letters"("saleId", "createdAt" DESC, "id" DESC);

-- CreateIndex
CREATE INDEX "dead_letters_createdAt_id_idx" ON "dead_letters"("createdAt" DESC, "id" DESC);

-- CreateIndex
CREATE UNIQUE INDEX "dead_letters_open_key" ON "dead_letters"("saleId", "requestId") WHERE (status = 'OPEN');
