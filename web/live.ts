/** Subscriptions over one WebSocket, which comes back by itself, and what they follow with it. */
import { createClient, type FormattedExecutionResult } from "graphql-ws/client";
import type { Buyer, Buyers } from "./buyer.js";
import type { Document } from "./documents.js";
import { backoffMs, type Waits } from "./waits.js";

export type Connection = "starting" | "connected" | "lost";

export interface Live {
  /** Every value of a subscription, until it completes or `stop` is called; opened again after whatever ends it otherwise. */
  follow<Data, Variables extends object>(
    document: Document<Data, Variables>,
    variables: Variables,
    next: (data: Data) => void,
  ): Stop;
  /** Gives up the present connection, which may be dead: it comes back by itself. */
  drop(): void;
  /** Gives it up for one of the present buyer's. */
  reconnect(): void;
}

export type Stop = () => void;

const FORBIDDEN = 4403;
const PING_EVERY_MS = 10_000;
const PONG_WITHIN_MS = 5_000;

/** Errors of a subscription that would come again. */
const FINAL_CODES: readonly (string | undefined)[] = ["NOT_FOUND", "FORBIDDEN", "BAD_USER_INPUT"];

/** @param onConnection told of every change; `connected` also after an outage that was too short to see */
export function createLive(buyers: Buyers, waits: Waits, onConnection: (connection: Connection) => void): Live {
  let sentAs: Buyer | null = null;
  let followed = 0;
  let deliberate = false;
  let pongMissing: ReturnType<typeof setTimeout> | undefined;
  const lost = () => {
    clearTimeout(pongMissing);
    // With nothing left to follow the client closes the connection itself.
    if (followed > 0 && !deliberate) onConnection("lost");
  };

  const client = createClient({
    url: `${location.origin.replace(/^http/, "ws")}/graphql`,
    connectionParams: async () => {
      sentAs = await buyers.current();
      if (!sentAs) throw new Error("no visitor pass could be had");
      return { authorization: `Bearer ${sentAs.token}` };
    },
    connectionAckWaitTimeout: PONG_WITHIN_MS,
    retryAttempts: Number.POSITIVE_INFINITY,
    // Browsers tell of a failed attempt by a plain error event, which isn't retried otherwise.
    shouldRetry: () => true,
    retryWait: (retries) => waits.pause(backoffMs(retries, Math.random())),
    keepAlive: PING_EVERY_MS,
    on: {
      connected: () => onConnection("connected"),
      closed: (event) => {
        lost();
        if ((event as CloseEvent).code === FORBIDDEN && sentAs) void buyers.renew(sentAs);
      },
      error: lost,
      ping: (received) => {
        if (received) return;
        clearTimeout(pongMissing);
        pongMissing = setTimeout(() => client.terminate(), PONG_WITHIN_MS);
      },
      pong: (received) => received && clearTimeout(pongMissing),
    },
  });

  return {
    follow(document, variables, next) {
      let stopped = false;
      let unsubscribe: Stop = () => {};
      let failures = 0;
      const open = () => {
        // A subscription that the server has to end says why in its last result, and then completes like any other.
        let lastError: string | undefined;
        unsubscribe = client.subscribe<DataOf<typeof document>>(
          { query: document, variables: { ...variables } as Record<string, unknown> },
          {
            next: (result) => {
              if (stopped) return;
              lastError = codeOf(result);
              if (!result.data || lastError) return;
              failures = 0;
              next(result.data);
            },
            error: (error) => void again(codeOf({ errors: error })),
            complete: () => (lastError ? void again(lastError) : stop()),
          },
        );
      };
      const again = async (code: string | undefined) => {
        if (stopped || FINAL_CODES.includes(code)) return stop();
        await waits.pause(backoffMs(failures, Math.random()));
        failures += 1;
        if (!stopped) open();
      };
      const stop = () => {
        if (stopped) return;
        stopped = true;
        followed -= 1;
        unsubscribe();
      };
      followed += 1;
      open();
      return stop;
    },
    drop: () => client.terminate(),
    reconnect() {
      deliberate = true;
      client.terminate();
      deliberate = false;
    },
  };
}

type DataOf<Asked> = Asked extends Document<infer Data, infer _Variables> ? Data : never;

/** The code of the first error, or UNKNOWN where there is an error without one: a CloseEvent, for example. */
function codeOf({ errors }: { errors?: unknown } | FormattedExecutionResult): string | undefined {
  if (errors === undefined) return undefined;
  const [error] = Array.isArray(errors) ? errors : [];
  return error?.extensions?.code ?? "UNKNOWN";
}
