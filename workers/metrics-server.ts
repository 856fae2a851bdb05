import { createServer, type Server } from "node:http";
import type { Resources } from "../src/resources.js";

/** `/metrics`, `/health` and `/ready` of a worker, on a port of their own. Bound to HOST: keep it off the internet. */
export function serveMetrics(resources: Resources, port: number): Server {
  const server = createServer(async (request, response) => {
    const send = (status: number, type: string, body: string) => {
      response.writeHead(status, { "content-type": type }).end(body);
    };
    switch (request.url) {
      case "/metrics": {
        const { registry } = resources.metrics;
        return send(200, registry.contentType, await registry.metrics());
      }
      case "/health":
        return send(200, "application/json", '{"status":"ok"}');
      case "/ready": {
        const ready = await resources.readiness();
        const status = ready.redis && ready.database ? "ready" : "not ready";
        return send(status === "ready" ? 200 : 503, "application/json", JSON.stringify({ status, ...ready }));
      }
      default:
        return send(404, "application/json", '{"error":"not found"}');
    }
  });
  server.on("error", (error) => resources.log.error({ port, err: error }, "metrics can't be served"));
  return server.listen(port, resources.config.HOST);
}
