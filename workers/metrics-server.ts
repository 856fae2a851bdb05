import { createServer, type Server } from "node:http";
import { createHealth } from "../src/lifecycle/health.js";
import type { Resources } from "../src/resources.js";

/** `/metrics`, `/health` and `/ready` of a worker, on a port of their own. Bound to HOST: keep it off the internet. */
export function serveMetrics(resources: Resources, port: number): Server {
  const health = createHealth(resources, () => false);
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
      case "/ready": {
        const { httpStatus, body } = request.url === "/health" ? health.alive() : await health.ready();
        return send(httpStatus, "application/json", JSON.stringify(body));
      }
      default:
        return send(404, "application/json", '{"error":"not found"}');
    }
  });
  server.on("error", (error) => resources.log.error({ port, err: error }, "metrics can't be served"));
  return server.listen(port, resources.config.HOST);
}
