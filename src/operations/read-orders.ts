import type { Database } from "../db/client.js";
import { findOrderPage, findOrders, type OrderListQuery } from "../db/reservations.js";
import type { Order, Page, RequestKey } from "../domain/model.js";

export interface ReadOrdersDeps {
  readonly reads: Database;
}

/** Orders, in the order of the keys; null for what isn't there. */
export async function readOrders(deps: ReadOrdersDeps, keys: readonly RequestKey[]): Promise<(Order | null)[]> {
  return keys.length === 0 ? [] : findOrders(deps.reads, keys);
}

/** A page of a buyer's orders, or of a sale's, the newest first. */
export function listOrders(deps: ReadOrdersDeps, query: OrderListQuery): Promise<Page<Order>> {
  return findOrderPage(deps.reads, query);
}
