import type { Principal } from "../admission/identity.js";
import type { Logger } from "../observability/logger.js";
import type { ChangeSaleStateDeps } from "../operations/change-sale-state.js";
import type { CreateSaleDeps } from "../operations/create-sale.js";
import type { ReadOrdersDeps } from "../operations/read-orders.js";
import type { ReadReservationsDeps } from "../operations/read-reservations.js";
import type { ReadSalesDeps } from "../operations/read-sales.js";
import type { ReserveDeps } from "../operations/reserve.js";
import type { WatchReservationDeps, WatchSaleDeps } from "../operations/watch.js";
import { toClientError } from "./errors.js";
import type { Loaders } from "./loaders.js";

/** All that the operations behind the schema need. The process's resources fit by structure. */
export type GraphQLDeps = ReserveDeps &
  ReadSalesDeps &
  ReadReservationsDeps &
  ReadOrdersDeps &
  CreateSaleDeps &
  ChangeSaleStateDeps &
  WatchReservationDeps &
  WatchSaleDeps;

/** What a transport knows of a request before GraphQL looks at it. */
export interface RequestScope {
  readonly requestId: string;
  /** says the request's id in every line */
  readonly log: Logger;
  /** Who calls; null is anybody. Throws a SluiceError where a token is given and is not valid. */
  readonly identify: () => Promise<Principal | null>;
}

/** What resolvers are handed, the same over HTTP, SSE and WebSocket. */
export interface GraphQLContext {
  readonly requestId: string;
  readonly log: Logger;
  readonly principal: Principal | null;
  readonly deps: GraphQLDeps;
  readonly loaders: Loaders;
}

/** The context of one request. Rejects with an error that is fit for clients. */
export async function createContext(
  scope: RequestScope,
  shared: Pick<GraphQLContext, "deps" | "loaders">,
): Promise<GraphQLContext> {
  const { requestId, log } = scope;
  try {
    return { requestId, log, principal: await scope.identify(), ...shared };
  } catch (error) {
    throw toClientError(error, log);
  }
}
