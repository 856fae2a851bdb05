import { createClient } from "graphql-ws";
import { WebSocket } from "ws";
import type { Buyer } from "./crowd.js";

/** Somebody who watches his reservation over WebSocket. */
export interface Following {
  /** the status that ended the waiting: the order is there, was there, or never will be; null where he left before */
  readonly told: Promise<string | null>;
  leave(): void;
}

const UPDATES = `subscription Updates($saleId: ID!, $requestId: UUID!) {
  reservationUpdates(saleId: $saleId, requestId: $requestId) { status }
}`;

const RETRIES = 10;

/** Subscribes to a reservation, also before there is one. Connects again by itself. */
export function follow(apiUrl: string, buyer: Buyer, saleId: string, requestId: string): Following {
  const client = createClient({
    url: `${apiUrl.replace(/^http/, "ws")}/graphql`,
    webSocketImpl: WebSocket,
    connectionParams: { authorization: `Bearer ${buyer.token}` },
    retryAttempts: RETRIES,
    shouldRetry: () => true,
  });
  let leave = () => {};
  const told = new Promise<string | null>((resolve) => {
    const end = (status: string | null) => {
      resolve(status);
      void client.dispose();
    };
    leave = () => end(null);
    client.subscribe<{ reservationUpdates: { status: string } }>(
      { query: UPDATES, variables: { saleId, requestId } },
      {
        next({ data }) {
          const status = data?.reservationUpdates.status;
          if (status && status !== "PENDING" && status !== "QUEUED") end(status);
        },
        error: () => end(null),
        complete: () => end(null),
      },
    );
  });
  return { told, leave };
}
