import { createClient as createSseClient } from "graphql-sse";
import { createClient as createWebSocketClient, type FormattedExecutionResult } from "graphql-ws";
import { WebSocket } from "ws";
import type { Api } from "./sluice.js";
import { atEndOfFile } from "./test-file.js";
import { waitFor } from "./wait.js";

export const TRANSPORTS = ["WebSocket", "SSE"] as const;
export type Transport = (typeof TRANSPORTS)[number];

/** How a subscription ended: as the server meant it, with errors in place of values, or with its connection. */
export type Ending =
  | { readonly kind: "completed" }
  | { readonly kind: "failed"; readonly codes: readonly (string | undefined)[] }
  | { readonly kind: "disconnected"; readonly closeCode: number | undefined };

/** A subscription as a client has it, whatever carries it. It never connects again by itself. */
export interface Subscription<Value> {
  /** What came so far, the oldest first. */
  readonly values: readonly Value[];
  /** The next value that this was not yet asked for. */
  next(timeoutMs?: number): Promise<Value>;
  /** The first value of all that looks so. */
  until(looksSo: (value: Value) => boolean, what: string, timeoutMs?: number): Promise<Value>;
  readonly done: Promise<Ending>;
  /** Leaves, as a client does that has seen enough. */
  close(): void;
}

interface Operation {
  readonly query: string;
  readonly variables: Record<string, unknown>;
}

interface Sink {
  next(result: FormattedExecutionResult): void;
  complete(): void;
  error(error: unknown): void;
}

/** Opens a subscription with one root field, whose values it gives. Anonymous with `token` null. */
export function subscribe<Value>(
  transport: Transport,
  api: Api,
  token: string | null,
  operation: Operation,
): Subscription<Value> {
  const connect = transport === "WebSocket" ? overWebSocket : overSse;
  const values: Value[] = [];
  const codes: (string | undefined)[] = [];
  let asked = 0;

  let end: (ending: Ending) => void = () => {};
  const done = new Promise<Ending>((resolve) => {
    end = resolve;
  });
  const endNow = () => end(codes.length > 0 ? { kind: "failed", codes } : { kind: "completed" });
  const close = connect(api, token, operation, {
    next({ data, errors }) {
      codes.push(...(errors ?? []).map(codeOf));
      const [value] = Object.values(data ?? {});
      if (value !== undefined && value !== null) values.push(value as Value);
    },
    complete: endNow,
    error(error) {
      if (!Array.isArray(error)) return end({ kind: "disconnected", closeCode: closeCodeOf(error) });
      codes.push(...error.map(codeOf));
      endNow();
    },
  });
  atEndOfFile(close);

  const found = <Found>(look: () => Found | undefined, what: string, timeoutMs = 15_000) =>
    waitFor(
      () => {
        const value = look();
        if (value === undefined) throw new Error(`so far there were ${JSON.stringify(values)}, and errors ${codes}`);
        return { value };
      },
      { what: `${what} over ${transport}`, timeoutMs },
    ).then(({ value }) => value);

  return {
    values,
    done,
    close,
    next(timeoutMs) {
      const at = asked++;
      return found(() => values[at], `value number ${at}`, timeoutMs);
    },
    until: (looksSo, what, timeoutMs) => found(() => values.find(looksSo), what, timeoutMs),
  };
}

function overWebSocket(api: Api, token: string | null, operation: Operation, sink: Sink): () => void {
  const client = createWebSocketClient({
    url: `${api.url.replace("http", "ws")}/graphql`,
    webSocketImpl: WebSocket,
    retryAttempts: 0,
    ...(token !== null && { connectionParams: { authorization: `Bearer ${token}` } }),
  });
  client.subscribe({ ...operation }, sink as Parameters<typeof client.subscribe>[1]);
  return () => void client.dispose();
}

function overSse(api: Api, token: string | null, operation: Operation, sink: Sink): () => void {
  const client = createSseClient({
    url: `${api.url}/graphql`,
    retryAttempts: 0,
    ...(token !== null && { headers: { authorization: `Bearer ${token}` } }),
  });
  client.subscribe({ ...operation }, sink as Parameters<typeof client.subscribe>[1]);
  return () => client.dispose();
}

function codeOf(error: { extensions?: Record<string, unknown> }): string | undefined {
  return error.extensions?.code as string | undefined;
}

function closeCodeOf(error: unknown): number | undefined {
  return typeof error === "object" && error !== null && "code" in error ? Number(error.code) : undefined;
}
