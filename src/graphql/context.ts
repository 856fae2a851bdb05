import type { AdmitDeps } from "../admission/admit.js";
import type { Principal } from "../admission/identity.js";
import { createRequestLog, type RequestLog } from "../observability/logger.js";
import type { AdjustStockDeps } from "../operations/adjust-stock.js";
import type { ChangeOrdersDeps } from "../operations/change-orders.js";
import type { ChangeSaleStateDeps } from "../operations/change-sale-state.js";
import type { CheckSaleDeps } from "../operations/check-sale.js";
import type { CompensateDeps } from "../operations/compensate.js";
import type { CreateSaleDeps } from "../operations/create-sale.js";
import type { ReadOrdersDeps } from "../operations/read-orders.js";
import type { ReadReservationsDeps } from "../operations/read-reservations.js";
import type { ReadSalesDeps } from "../operations/read-sales.js";
import type { ReloadDeps } from "../operations/reload.js";
import type { ReplayDeps } from "../operations/replay.js";
import type { RequestPaymentDeps } from "../operations/request-payment.js";
import type { TraceDeps } from "../operations/trace-request.js";
import type { WatchReservationDeps, WatchSaleDeps } from "../operations/watch.js";
import { toClientError } from "./errors.js";
import type { Loaders } from "./loaders.js";

/** All that the operations behind the schema need. The process's resources fit by structure. */
export type GraphQLDeps = AdmitDeps &
  ReadSalesDeps &
  ReadReservationsDeps &
  ReadOrdersDeps &
  CreateSaleDeps &
  ChangeSaleStateDeps &
  ChangeOrdersDeps &
  RequestPaymentDeps &
  AdjustStockDeps &
  CheckSaleDeps &
  ReloadDeps &
  ReplayDeps &
  CompensateDeps &
  TraceDeps &
  WatchReservationDeps &
  WatchSaleDeps;

/** What a transport knows of a request before GraphQL looks at it. */
export interface RequestScope {
  readonly requestId: string;
  /** says the request's id in every line */
  readonly log: RequestLog;
  /** Who calls; null is anybody. Throws a SluiceError where a token is given and is not valid. */
  readonly identify: () => Promise<Principal | null>;
}

/** What resolvers are handed, the same over HTTP, SSE and WebSocket. */
export interface GraphQLContext {
  readonly requestId: string;
  readonly log: RequestLog;
  readonly principal: Principal | null;
  readonly deps: GraphQLDeps;
  readonly loaders: Loaders;
}

/** What the requests of a process have in common. */
export interface SharedContext extends Pick<GraphQLContext, "deps" | "loaders"> {
  readonly maskBuyer: (buyerId: string) => string;
}

/** The context of one request. Rejects with an error that is fit for clients. */
export async function createContext(scope: RequestScope, shared: SharedContext): Promise<GraphQLContext> {
  const { requestId } = scope;
  const { deps, loaders } = shared;
  try {
    const principal = await scope.identify();
    const log = principal
      ? createRequestLog(scope.log, () => ({ role: principal.role, caller: shared.maskBuyer(principal.buyerId) }))
      : scope.log;
    return { requestId, principal, deps, loaders, log };
  } catch (error) {
    throw toClientError(error, scope.log);
  }
}
