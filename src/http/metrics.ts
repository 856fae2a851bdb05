import type { MetricsSource } from "../observability/shared-metrics.js";
import type { Route } from "./routes.js";

export interface MetricsResources {
  /** this process's figures, or those of all that share its port */
  readonly metricsSource: MetricsSource;
}

/** Everything that is counted, in Prometheus' text format. */
export function metricsRoute({ metricsSource }: MetricsResources): Route {
  return async (_req, res) => {
    const text = await metricsSource.read();
    res.writeHead(200, { "content-type": metricsSource.contentType, "cache-control": "no-store" }).end(text);
  };
}
