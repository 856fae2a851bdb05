import { createServer } from "node:http";
import type { Health } from "../lifecycle/health.js";
import type { Logger } from "./logger.js";
import type { MetricsSource } from "./shared-metrics.js";

export interface MetricsServerOptions {
  /** left out, nothing is served */
  readonly port: number | undefined;
  readonly host: string;
  readonly metrics: MetricsSource;
  readonly health: Health;
  readonly log: Logger;
}

/**
 * Serves `/metrics`, `/health` and `/ready` without a token on a port of their own: keep it off the internet. Where it
 * can't listen it says so in one line, and the process goes on without.
 */
export function serveMetrics(options: MetricsServerOptions): { close(): void } {
  const { port, host, log } = options;
  if (port === undefined) return { close() {} };
  const server = createServer((request, response) => {
    const send = (status: number, type: string, body: string) => {
      response.writeHead(status, { "content-type": type, "cache-control": "no-store" }).end(body);
    };
    answer(options, request.method, request.url).then(
      ([status, type, body]) => send(status, type, body),
      (error: unknown) => {
        log.warn({ err: error }, "metrics can't be told");
        send(500, "text/plain", "The metrics can't be told right now.\n");
      },
    );
  });
  server.on("error", (error) =>
    log.error({ port, host, why: error.message }, "metrics can't be served on METRICS_PORT"),
  );
  server.on("listening", () => log.info({ address: server.address() }, "serving metrics"));
  server.listen(port, host);
  return {
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

type Answer = readonly [status: number, type: string, body: string];

async function answer({ metrics, health }: MetricsServerOptions, method = "", url = ""): Promise<Answer> {
  const json = (status: number, body: object): Answer => [status, "application/json", JSON.stringify(body)];
  if (method !== "GET" && method !== "HEAD") return json(405, { error: "Only GET is answered here." });
  switch (url.split("?")[0]) {
    case "/metrics":
      return [200, metrics.contentType, await metrics.read()];
    case "/health":
      return json(health.alive().httpStatus, health.alive().body);
    case "/ready": {
      const { httpStatus, body } = await health.ready();
      return json(httpStatus, body);
    }
    default:
      return json(404, { error: "There is nothing here." });
  }
}
