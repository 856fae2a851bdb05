/** The HTTP server: a small table of routes in front of GraphQL, and a way to stop that loses nobody's answer. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { createVerifier, principalFromAuthorization } from "../admission/identity.js";
import { rememberTokens } from "../admission/token-cache.js";
import { serviceUnavailable } from "../domain/errors.js";
import { isId, newId } from "../domain/ids.js";
import { MINUTE, SECOND } from "../domain/time.js";
import type { RequestScope } from "../graphql/context.js";
import { createHealth, type Readiness } from "../lifecycle/health.js";
import { pause } from "../lifecycle/pause.js";
import { takeTurns } from "../lifecycle/turns.js";
import { createRequestLog } from "../observability/logger.js";
import { ADMIN_QUEUES_PATH, type AdminQueuesResources, adminQueuesRoute } from "./admin-queues.js";
import { trackConnections } from "./connections.js";
import { demoRoutes } from "./demo.js";
import { demoPaymentRoutes } from "./demo-payment.js";
import { explorerRoute, wantsExplorer } from "./explorer.js";
import { createGateway, type GatewayResources, GRAPHQL_PATH } from "./gateway.js";
import { type MetricsResources, metricsRoute } from "./metrics.js";
import { operatorsOnly } from "./operators-only.js";
import { PAYMENT_WEBHOOK_PATH, paymentWebhookRoute } from "./payment-webhook.js";
import { findRoute, type Routes, readOnly } from "./routes.js";
import { sendJson } from "./send-json.js";
import { createWebSocketEndpoint, refuse } from "./websocket.js";

/** What the server needs. The process's resources fit by structure. */
export interface HttpResources extends GatewayResources, MetricsResources, AdminQueuesResources {
  readiness(): Promise<Readiness>;
}

export interface HttpServer {
  readonly server: Server;
  /** Listens on HOST and PORT. Rejects where it can't, with the system's error: `code` is EADDRINUSE where the port is taken. */
  listen(): Promise<{ readonly port: number; readonly url: string }>;
  /**
   * Takes the connections that wait and then no more, lets requests under way finish, ends subscriptions (WebSockets with
   * 1001), and after `deadlineMs` cuts off what is left. Resolves when all are gone.
   */
  close(deadlineMs: number): Promise<void>;
}

/** So long a token is taken after its key was withdrawn. */
const TOKENS_REMEMBERED_MS = 10 * MINUTE;

/** The API's HTTP server over the given resources, not listening yet. */
export function createHttpServer(resources: HttpResources): HttpServer {
  const { config, log } = resources;
  const verifier = rememberTokens(createVerifier(config), TOKENS_REMEMBERED_MS);
  const gateway = createGateway(resources);
  const turn = takeTurns();
  const explorer = explorerRoute(resources);
  const webSocket = createWebSocketEndpoint(gateway, {
    verifier,
    log,
    allowedOrigins: config.CORS_ORIGINS,
    connections: resources.metrics.webSockets,
    turn,
  });
  let closing = false;
  const health = createHealth(resources, () => closing);

  const routes: Routes = {
    [GRAPHQL_PATH]: async (req, res, scope) => {
      await turn();
      if (wantsExplorer(req)) await explorer(req, res, scope);
      else await gateway.handle(req, res, scope);
    },
    "/health": readOnly(async (_req, res) => sendJson(res, health.alive().httpStatus, health.alive().body)),
    "/ready": readOnly(async (_req, res) => {
      const { httpStatus, body } = await health.ready();
      sendJson(res, httpStatus, body);
    }),
    "/metrics": readOnly(operatorsOnly(verifier, metricsRoute(resources))),
    [`${ADMIN_QUEUES_PATH}/*`]: readOnly(operatorsOnly(verifier, adminQueuesRoute(resources))),
    ...paymentRoutes(resources, turn),
    ...(config.SLUICE_DEMO ? demoRoutes(resources) : {}),
  };

  const onRequest = async (req: IncomingMessage, res: ServerResponse) => {
    resources.metrics.httpInFlight.inc();
    res.once("close", () => resources.metrics.httpInFlight.dec());
    const requestId = requestIdOf(req);
    const scope: RequestScope = {
      requestId,
      log: createRequestLog(log, () => ({ requestId })),
      identify: () => principalFromAuthorization(verifier, req.headers.authorization),
    };
    res.setHeader("x-request-id", requestId);
    res.setHeader("x-content-type-options", "nosniff");
    if (closing) res.setHeader("connection", "close");
    // Answers differ by origin where CORS is on: caches must not mix them.
    if (config.CORS_ORIGINS.length > 0) res.setHeader("vary", "Origin");
    res.once("close", connections.begin(req.socket));
    try {
      await findRoute(routes, pathOf(req))(req, res, scope);
    } catch (error) {
      scope.log.error({ err: error }, "request failed");
      if (res.headersSent) res.destroy();
      else sendJson(res, 500, { error: "Something went wrong." });
    }
  };

  const server = createServer({ requestTimeout: 30 * SECOND, headersTimeout: 10 * SECOND }, (req, res) => {
    void onRequest(req, res);
  });
  const connections = trackConnections(server);
  // Longer than load balancers keep idle connections (60 s mostly): they must not send into one that we just closed.
  server.keepAliveTimeout = 65 * SECOND;
  server.on("upgrade", (req: IncomingMessage, socket: Duplex, head: Buffer) => {
    connections.leave(req.socket);
    if (pathOf(req) === GRAPHQL_PATH) webSocket.upgrade(req, socket, head);
    else refuse(socket, 404);
  });

  const close = async (deadlineMs: number) => {
    closing = true;
    const deadline = Date.now() + deadlineMs;
    const done = new AbortController();
    const cut = pause(deadlineMs, done.signal).then(() => server.closeAllConnections());
    await connections.acceptWaiting(deadlineMs / 2);
    const gone = new Promise<void>((resolve) => server.close(() => resolve()));
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

/** None without a secret: then payments are reported by confirmPayment. */
function paymentRoutes(resources: HttpResources, turn: () => Promise<void>): Routes {
  const { SLUICE_DEMO, PAYMENT_WEBHOOK_SECRET: secrets } = resources.config;
  if (!secrets) return {};
  const webhook = paymentWebhookRoute(resources, secrets);
  return {
    [PAYMENT_WEBHOOK_PATH]: async (req, res, scope) => {
      await turn();
      await webhook(req, res, scope);
    },
    ...(SLUICE_DEMO ? demoPaymentRoutes(secrets) : {}),
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
