import type { Logger } from "../observability/logger.js";

/** Does something for one sale after the other; a sale that fails is told and doesn't stand in the others' way. */
export async function forEachSale(
  log: Logger,
  saleIds: readonly string[],
  work: (saleId: string) => Promise<void>,
): Promise<void> {
  const failures: unknown[] = [];
  for (const saleId of saleIds) {
    try {
      await work(saleId);
    } catch (error) {
      failures.push(error);
      log.debug({ saleId, err: error }, "this sale could not be seen to");
    }
  }
  if (failures.length > 0) throw failures[0];
}
