import { REMEMBERED_AFTER_CLOSE_MS } from "../domain/time.js";

/** The Redis keys of one sale. All carry the sale's hash tag, so that a sale lives on one shard of a cluster. */
export interface SaleKeys {
  readonly sale: string;
  readonly stock: string;
  readonly holders: string;
  readonly pending: string;
  readonly events: string;
  request(requestId: string): string;
}

export function saleKeys(saleId: string): SaleKeys {
  const base = `sluice:{${saleId}}`;
  return {
    sale: `${base}:sale`,
    stock: `${base}:stock`,
    holders: `${base}:holders`,
    pending: `${base}:pending`,
    events: `${base}:events`,
    request: (requestId) => `${base}:r:${requestId}`,
  };
}

/** BullMQ's prefix for the queue of a sale: its keys are `sluice:{S}:q:<queue>:…`. */
export function queuePrefix(saleId: string): string {
  return `sluice:{${saleId}}:q`;
}

/** When a sale's keys expire, in milliseconds of Redis time. */
export function forgetAtMs(closesAt: Date): number {
  return closesAt.getTime() + REMEMBERED_AFTER_CLOSE_MS;
}
