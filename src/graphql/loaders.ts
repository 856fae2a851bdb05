/**
 * Reads that many requests make at the same moment, joined into one. The loaders belong to the process, not to a
 * request: buyers who look at the same sale within two milliseconds share one read of it. So nothing is cached.
 */
import DataLoader from "dataloader";
import { orderIdOf } from "../domain/ids.js";
import type { LiveSale, Order, RequestKey, Reservation } from "../domain/model.js";
import { type ReadOrdersDeps, readOrders } from "../operations/read-orders.js";
import { type ReadSalesDeps, readSales } from "../operations/read-sales.js";

const BATCH_MS = 2;
const BATCH_SIZE = 500;

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
    sale: joined(
      (ids) => readSales(deps, ids),
      (id) => id,
    ),
    // The one that watches read through too.
    reservation: deps.reservationLoader,
    order: joined(
      (keys) => readOrders(deps, keys),
      ({ saleId, requestId }) => orderIdOf(saleId, requestId),
    ),
  };
}

function joined<Key, Row>(
  read: (keys: readonly Key[]) => Promise<readonly (Row | null)[]>,
  identity: (key: Key) => string,
): DataLoader<Key, Row | null> {
  const readOnce = async (keys: readonly Key[]) => {
    const distinct = new Map(keys.map((key) => [identity(key), key]));
    const rows = await read([...distinct.values()]);
    const byIdentity = new Map([...distinct.keys()].map((id, index) => [id, rows[index] ?? null]));
    return keys.map((key) => byIdentity.get(identity(key)) ?? null);
  };
  return new DataLoader(readOnce, {
    cache: false,
    maxBatchSize: BATCH_SIZE,
    batchScheduleFn: (dispatch) => void setTimeout(dispatch, BATCH_MS),
  });
}
