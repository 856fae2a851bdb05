/**
 * GraphQL over WebSocket (graphql-transport-ws), through Yoga's own parse, validate, execute and subscribe. Handed the
 * schema instead, graphql-ws would pass by every limit and mask that HTTP has.
 */
import { type IncomingMessage, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { setImmediate } from "node:timers/promises";
import { type ExecutionArgs, GraphQLError, getOperationAST } from "graphql";
import { CloseCode, type ConnectionInitMessage, type Context, type SubscribePayload } from "graphql-ws";
import { type Extra, useServer } from "graphql-ws/use/ws";
import type { Gauge } from "prom-client";
import { WebSocketServer } from "ws";
import { type Principal, principalFromAuthorization, type Verifier } from "../admission/identity.js";
import { SluiceError, serviceUnavailable } from "../domain/errors.js";
import { newId } from "../domain/ids.js";
import type { RequestScope } from "../graphql/context.js";
import { formatClientError, formatResult, toClientError } from "../graphql/errors.js";
import { pause } from "../lifecycle/pause.js";
import { createRequestLog, type Logger } from "../observability/logger.js";
import { atTime } from "./at-time.js";
import { type Gateway, MAX_REQUEST_BYTES } from "./gateway.js";
import { mayOpenWebSocket } from "./origins.js";

const MAX_SUBSCRIPTIONS = 100;
/** The close code that tells clients to come back: those of 44xx make some give up for good. */
const TRY_AGAIN_LATER = 1013;

/** What is known of one socket; `principal` is set once, when the connection is initialised. */
interface Connection extends Record<PropertyKey, unknown> {
  principal: Principal | null;
  cancelExpiry?: () => void;
}
type Payload = ConnectionInitMessage["payload"];
type Socket = Context<Payload, Extra & Partial<Connection>>;

export interface WebSocketEndpoint {
  /** Takes over an upgrade request, or refuses it. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  /** Takes no more sockets and operations; resolves when the queries and mutations under way are answered, or after `deadlineMs`. */
  drain(deadlineMs: number): Promise<void>;
  /**
   * Tells clients to go (1001), and cuts those off that haven't gone after `deadlineMs`. Subscriptions are not completed:
   * clients open them again elsewhere, which they wouldn't with a completed one.
   */
  close(deadlineMs: number): Promise<void>;
}

/** Serves the gateway over WebSocket. */
export function createWebSocketEndpoint(
  { yoga }: Pick<Gateway, "yoga">,
  options: {
    verifier: Verifier;
    log: Logger;
    allowedOrigins: readonly string[];
    connections: Gauge;
    /** resolves when an operation may begin */
    turn: () => Promise<void>;
  },
): WebSocketEndpoint {
  const { verifier, log, allowedOrigins, connections, turn } = options;
  const sockets = new WebSocketServer({ noServer: true, maxPayload: MAX_REQUEST_BYTES });
  const engines = new WeakMap<ExecutionArgs, Pick<ReturnType<typeof yoga.getEnveloped>, "execute" | "subscribe">>();
  const underWay = new Set<Promise<unknown>>();
  let closing = false;
  const waitFor = <Answer>(answer: Promise<Answer>): Promise<Answer> => {
    underWay.add(answer);
    const answered = () => underWay.delete(answer);
    answer.then(answered, answered);
    return answer;
  };

  const scopeOf = ({ extra }: Socket): RequestScope => {
    const requestId = newId();
    return {
      requestId,
      log: createRequestLog(log, () => ({ requestId })),
      identify: () => Promise.resolve(extra.principal ?? null),
    };
  };

  const prepare = async (connection: Socket, payload: SubscribePayload) => {
    const scope = scopeOf(connection);
    try {
      await turn();
      if (closing) throw serviceUnavailable("The server is stopping.");
      if (Object.keys(connection.subscriptions).length > MAX_SUBSCRIPTIONS) {
        throw new SluiceError("RATE_LIMITED", `At most ${MAX_SUBSCRIPTIONS} operations at a time on a connection.`);
      }
      const { schema, execute, subscribe, contextFactory, parse, validate } = yoga.getEnveloped(scope);
      const document = parse(payload.query);
      const invalid: readonly GraphQLError[] = validate(schema, document);
      if (invalid.length > 0) return invalid.map((error) => toClientError(error, scope.log));
      if (!getOperationAST(document, payload.operationName)) {
        return [toClientError(new GraphQLError("Could not determine what operation to execute."), scope.log)];
      }
      const args: ExecutionArgs = {
        schema,
        document,
        operationName: payload.operationName,
        variableValues: payload.variables,
        contextValue: await contextFactory(),
        rootValue: undefined,
      };
      engines.set(args, { execute, subscribe });
      return args;
    } catch (error) {
      return [toClientError(error, scope.log)];
    }
  };

  const engineOf = (args: ExecutionArgs) => {
    const engine = engines.get(args);
    if (!engine) throw new Error("an operation that was not prepared here");
    return engine;
  };

  const server = useServer<Payload, Connection>(
    {
      // Off production it would send texts of internal errors as close reasons.
      isProd: true,
      onConnect: (connection) => connect(connection, verifier, log),
      onSubscribe: (connection, _id, payload) => waitFor(prepare(connection, payload)),
      execute: (args) => waitFor(Promise.resolve(engineOf(args).execute(args))),
      subscribe: (args) => engineOf(args).subscribe(args),
      onNext: (_connection, _id, _payload, _args, result) => formatResult(result),
      onError: (_connection, _id, _payload, errors) =>
        errors.map((error) => formatClientError(toClientError(error, log))),
      onClose: ({ extra }) => extra.cancelExpiry?.(),
    },
    sockets,
  );

  sockets.on("connection", (socket) => {
    // Replaces the listener of graphql-ws, which prints a stack trace to the console for every oversized frame that
    // somebody cares to send. The socket closes itself, with the code that fits.
    socket.removeAllListeners("error");
    socket.on("error", (error) => log.debug({ err: error }, "a WebSocket failed"));
    connections.inc();
    socket.once("close", () => connections.dec());
  });

  return {
    upgrade(request, socket, head) {
      if (closing) return refuse(socket, 503);
      if (!mayOpenWebSocket(request.headers, allowedOrigins)) return refuse(socket, 403);
      sockets.handleUpgrade(request, socket, head, (opened) => sockets.emit("connection", opened, request));
    },
    async drain(deadlineMs) {
      closing = true;
      const done = new AbortController();
      let late = false;
      const deadline = pause(deadlineMs, done.signal).then(() => {
        late = true;
      });
      do {
        await Promise.race([Promise.allSettled(underWay), deadline]);
        // The answers are handed to the sockets, and what was prepared begins, after the promises that were waited for here.
        await setImmediate();
      } while (underWay.size > 0 && !late);
      done.abort();
    },
    async close(deadlineMs) {
      closing = true;
      const done = new AbortController();
      const cut = pause(deadlineMs, done.signal).then(() => {
        for (const socket of sockets.clients) socket.terminate();
      });
      await server.dispose();
      done.abort();
      await cut;
    },
  };
}

/** Answers an upgrade request that is not wanted. */
export function refuse(socket: Duplex, status: number): void {
  // The other side may be gone already; there is nobody left to tell.
  socket.on("error", () => socket.destroy());
  socket.once("finish", () => socket.destroy());
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
}

/** Identifies the caller when the connection is initialised. A bad token is refused (4403), not taken for an anonymous caller. */
async function connect({ extra, connectionParams }: Socket, verifier: Verifier, log: Logger): Promise<boolean> {
  const given = Object.entries(connectionParams ?? {}).find(([key]) => key.toLowerCase() === "authorization")?.[1];
  if (given !== undefined && typeof given !== "string") return false;
  try {
    extra.principal = await principalFromAuthorization(verifier, given ?? extra.request.headers.authorization);
  } catch (error) {
    if (error instanceof SluiceError && error.code === "UNAUTHENTICATED") return false;
    log.warn({ err: error }, "a connection's token could not be verified");
    extra.socket.close(TRY_AGAIN_LATER, "Try again later");
    return false;
  }
  if (extra.principal) {
    extra.cancelExpiry = atTime(extra.principal.expiresAt, () => extra.socket.close(CloseCode.Forbidden, "Forbidden"));
  }
  return true;
}
