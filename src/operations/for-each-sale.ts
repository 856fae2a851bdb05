import type { Logger } from "../observability/logger.js";

/** Does something for one sale after the other; a sale that fails is told and doesn't stand in the others' way. */
export async function forEachSale<Sale extends { readonly id: string }>(
  log: Logger,
  sales: readonly Sale[],
  work: (sale: Sale, at: number) => Promise<void>,
): Promise<void> {
  const failures: unknown[] = [];
  for (const [at, sale] of sales.entries()) {
    try {
      await work(sale, at);
    } catch (error) {
      failures.push(error);
      log.debug({ saleId: sale.id, err: error }, "this sale could not be seen to");
    }
  }
  if (failures.length > 0) throw failures[0];
}
