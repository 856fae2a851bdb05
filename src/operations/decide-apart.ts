import type { Tx } from "../db/client.js";
import {
  type Decision,
  decideRequests,
  insertLockMovements,
  insertOrders,
  lockOpenRequests,
  lockStock,
  lockUnits,
  type OpenRequest,
} from "../db/orders.js";

/** What became of requests that were decided apart from the common case. */
export interface DecidedApart {
  readonly decisions: readonly Decision[];
  /** how old those were that have an order now, in seconds */
  readonly ages: readonly number[];
}

/**
 * Decides those of a batch that are undecided still, for whom the common case of one statement was not enough: there is not
 * stock for all, a buyer has two, or another valid order stands against one. Those that fit get their orders, the earliest
 * accepted first; one that another valid order of its buyer stands against is FAILED; the rest is SOLD_OUT. None gives
 * anything back: the sale has to be loaded again.
 *
 * A statement after the other, each of which sees what was committed while the one before it waited.
 */
export async function decideApart(tx: Tx, saleId: string, requestIds: readonly string[]): Promise<DecidedApart> {
  let open = await lockOpenRequests(tx, saleId, requestIds);
  if (open.length === 0) return { decisions: [], ages: [] };
  const available = await lockStock(tx, saleId, [...new Set(open.map((request) => request.itemId))].sort());
  const ordered: OpenRequest[] = [];
  const refused: OpenRequest[] = [];
  // One that another valid order of its buyer stands against leaves its units to those behind it.
  for (let candidates = fitting(open, available); candidates.length > 0; candidates = fitting(open, available)) {
    const written = await insertOrders(tx, saleId, candidates);
    for (const request of candidates) {
      if (!written.has(request.requestId)) {
        refused.push(request);
        continue;
      }
      ordered.push(request);
      available.set(request.itemId, (available.get(request.itemId) ?? 0) - request.quantity);
    }
    const tried = new Set(candidates);
    open = open.filter((request) => !tried.has(request));
  }
  const decisions: Decision[] = [
    ...ordered.map(({ requestId }) => asOrdered(requestId)),
    ...refused.map(({ requestId }) => ({
      requestId,
      outcome: "FAILED" as const,
      reason: "PROCESSING_FAILED" as const,
    })),
    ...open.map(({ requestId }) => ({ requestId, outcome: "SOLD_OUT" as const, reason: "STOCK_GONE" as const })),
  ];
  if (ordered.length > 0) await lockUnits(tx, saleId, unitsByItem(ordered));
  await decideRequests(tx, saleId, decisions);
  if (ordered.length > 0) await insertLockMovements(tx, saleId, ordered);
  return { decisions, ages: ordered.map(({ ageSeconds }) => ageSeconds) };
}

export function asOrdered(requestId: string): Decision {
  return { requestId, outcome: "ORDERED", reason: null };
}

/** Those of the requests that there is stock for, the earliest accepted first, one of each buyer. */
function fitting(open: readonly OpenRequest[], available: ReadonlyMap<string, number>): OpenRequest[] {
  const left = new Map(available);
  const buyers = new Set<string>();
  const fit = [...open]
    .sort((a, b) => a.seq - b.seq)
    .filter((request) => {
      const units = left.get(request.itemId) ?? 0;
      if (units < request.quantity || buyers.has(request.buyerId)) return false;
      buyers.add(request.buyerId);
      left.set(request.itemId, units - request.quantity);
      return true;
    });
  return fit.sort((a, b) => (a.requestId < b.requestId ? -1 : 1));
}

function unitsByItem(requests: readonly OpenRequest[]): Map<string, number> {
  const units = new Map<string, number>();
  for (const { itemId, quantity } of requests) units.set(itemId, (units.get(itemId) ?? 0) + quantity);
  return units;
}
