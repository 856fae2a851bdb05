/**
 * Reads that many requests make at the same moment, joined into one. The loaders belong to the process, not to a
 * request: buyers who look at the same sale within two milliseconds share one read of it. So nothing is cached.
 */
import type DataLoader from "dataloader";
import { orderIdOf } from "../domain/ids.js";
import type { LiveSale, Order, RequestKey, Reservation } from "../domain/model.js";
import { joinReads } from "../lifecycle/join-reads.js";
import { type ReadOrdersDeps, readOrders } from "../operations/read-orders.js";
import { type ReadSalesDeps, readSales } from "../operations/read-sales.js";

export interface Loaders {
  /** drafts included: hide them by `visibleSale` */
  readonly sale: DataLoader<string, LiveSale | null>;
  /** anybody's: hide them by `ownOrNull` */
  readonly reservation: { load(key: RequestKey): Promise<Reservation | null> };
  /** anybody's: hide them by `ownOrNull` */
  readonly order: DataLoader<RequestKey, Order | null>;
}

interface LoaderDeps extends ReadSalesDeps, ReadOrdersDeps {
  readonly reservationLoader: Loaders["reservation"];
}

/** The loaders of a process. */
export function createLoaders(deps: LoaderDeps): Loaders {
  return {
    sale: joinReads(
      (ids) => readSales(deps, ids),
      (id) => id,
    ),
    // The one that watches read through too.
    reservation: deps.reservationLoader,
    order: joinReads(
      (keys) => readOrders(deps, keys),
      ({ saleId, requestId }) => orderIdOf(saleId, requestId),
    ),
  };
}
