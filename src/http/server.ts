/** The HTTP server: a small table of routes in front of GraphQL, and a way to stop that loses nobody's answer. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { createVerifier, principalFromAuthorization } from "../admission/identity.js";
import { serviceUnavailable } from "../domain/errors.js";
import { isId, newId } from "../domain/ids.js";
import { SECOND } from "../domain/time.js";
import type { RequestScope } from "../graphql/context.js";
import { createHealth, type Readiness } from "../lifecycle/health.js";
import { pause } from "../lifecycle/pause.js";
import { createGateway, type GatewayResources, GRAPHQL_PATH } from "./gateway.js";
import { type MetricsResources, sendMetrics } from "./metrics.js";
import { sendJson } from "./send-json.js";
import { createWebSocketEndpoint, refuse } from "./websocket.js";

/** What the server needs. The process's resources fit by structure. */
export interface HttpResources extends GatewayResources, MetricsResources {
  readiness(): Promise<Readiness>;
}

export interface HttpServer {
  readonly server: Server;
  /** Listens on HOST and PORT. Rejects where it can't, with the system's error: `code` is EADDRINUSE where the port is taken. */
  listen(): Promise<{ readonly port: number; readonly url: string }>;
  /**
   * Takes no more connections, lets requests under way finish, ends subscriptions (WebSockets with 1001), and after
   * `deadlineMs` cuts off what is left. Resolves when all are gone.
   */
  close(deadlineMs: number): Promise<void>;
}

/** One answer of the table; `scope` names the request. */
type Route = (req: IncomingMessage, res: ServerResponse, scope: RequestScope) => void | Promise<void>;

/** The API's HTTP server over the given resources, not listening yet. */
export function createHttpServer(resources: HttpResources): HttpServer {
  const { config, log } = resources;
  const verifier = createVerifier(config);
  const gateway = createGateway(resources);
  const webSocket = createWebSocketEndpoint(gateway, { verifier, log, allowedOrigins: config.CORS_ORIGINS });
  let closing = false;
  const health = createHealth(resources, () => closing);

  const routes: Readonly<Record<string, Route>> = {
    [GRAPHQL_PATH]: (req, res, scope) => gateway.yoga.handle(req, res, scope),
    "/health": readOnly((res) => sendJson(res, health.alive().httpStatus, health.alive().body)),
    "/ready": readOnly(async (res) => {
      const { httpStatus, body } = await health.ready();
      sendJson(res, httpStatus, body);
    }),
    "/metrics": readOnly((res, scope) => sendMetrics(resources, res, scope)),
  };

  const onRequest = async (req: IncomingMessage, res: ServerResponse) => {
    const requestId = requestIdOf(req);
    const scope: RequestScope = {
      requestId,
      log: log.child({ requestId }),
      identify: () => principalFromAuthorization(verifier, req.headers.authorization),
    };
    res.setHeader("x-request-id", requestId);
    res.setHeader("x-content-type-options", "nosniff");
    if (closing) res.setHeader("connection", "close");
    // Answers differ by origin where CORS is on: caches must not mix them.
    if (config.CORS_ORIGINS.length > 0) res.setHeader("vary", "Origin");
    // A connection whose answer is sent while closing has nothing more to wait for.
    res.once("close", () => closing && setImmediate(() => server.closeIdleConnections()));
    try {
      const path = pathOf(req);
      const route = Object.hasOwn(routes, path) ? routes[path] : undefined;
      if (route) await route(req, res, scope);
      else sendJson(res, 404, { error: "There is nothing here." });
    } catch (error) {
      scope.log.error({ err: error }, "request failed");
      if (res.headersSent) res.destroy();
      else sendJson(res, 500, { error: "Something went wrong." });
    }
  };

  const server = createServer({ requestTimeout: 30 * SECOND, headersTimeout: 10 * SECOND }, (req, res) => {
    void onRequest(req, res);
  });
  // Longer than load balancers keep idle connections (60 s mostly): they must not send into one that we just closed.
  server.keepAliveTimeout = 65 * SECOND;
  server.on("upgrade", (req: IncomingMessage, socket: Duplex, head: Buffer) => {
    if (pathOf(req) === GRAPHQL_PATH) webSocket.upgrade(req, socket, head);
    else refuse(socket, 404);
  });

  const close = async (deadlineMs: number) => {
    closing = true;
    const deadline = Date.now() + deadlineMs;
    const gone = new Promise<void>((resolve) => server.close(() => resolve()));
    const done = new AbortController();
    const cut = pause(deadlineMs, done.signal).then(() => server.closeAllConnections());
    await webSocket.drain(deadlineMs / 2);
    const webSocketsGone = webSocket.close(deadline - Date.now());
    // What is left are SSE streams, which have no close code: they are told by their last value.
    gateway.subscriptions.endAll(serviceUnavailable("The server is stopping. Subscribe again."));
    await Promise.all([gone, webSocketsGone]);
    done.abort();
    await cut;
  };
  let closed: Promise<void> | undefined;

  return {
    server,
    async listen() {
      await new Promise<void>((resolve, reject) => {
        server.once("error", reject);
        server.listen({ port: config.PORT, host: config.HOST }, () => {
          server.off("error", reject);
          server.on("error", (error) => log.error({ err: error }, "the HTTP server reports an error"));
          resolve();
        });
      });
      const { port } = server.address() as AddressInfo;
      return { port, url: `http://${config.HOST.includes(":") ? `[${config.HOST}]` : config.HOST}:${port}` };
    },
    close(deadlineMs) {
      closed ??= close(deadlineMs);
      return closed;
    },
  };
}

function readOnly(answer: (res: ServerResponse, scope: RequestScope) => void | Promise<void>): Route {
  return (req, res, scope) => {
    if (req.method === "GET" || req.method === "HEAD") return answer(res, scope);
    res.setHeader("allow", "GET, HEAD");
    sendJson(res, 405, { error: "Only GET is answered here." });
  };
}

/** The caller's own id for the request where it can be one in our logs, else a new one. */
function requestIdOf(req: IncomingMessage): string {
  const given = req.headers["x-request-id"];
  return typeof given === "string" && isId(given) ? given : newId();
}

function pathOf(req: IncomingMessage): string {
  const url = req.url ?? "";
  const query = url.indexOf("?");
  return query < 0 ? url : url.slice(0, query);
}
