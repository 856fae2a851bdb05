/** One process of the API: GraphQL over HTTP, SSE and WebSocket, health and metrics on one port. */
import cluster from "node:cluster";
import { type Config, ConfigError } from "./config.js";
import { createHttpServer } from "./http/server.js";
import { armFailpoints } from "./lifecycle/failpoints.js";
import { createHealth } from "./lifecycle/health.js";
import { exitWithParent } from "./lifecycle/parent.js";
import { stopOnSignals } from "./lifecycle/shutdown.js";
import { serveMetrics } from "./observability/metrics-server.js";
import { type Channel, metricsOfAll, metricsOfOne } from "./observability/shared-metrics.js";
import { findObstacle } from "./preflight.js";
import { openResources } from "./resources.js";

/** Serves until it is told to stop. Resolves with its address once it listens. */
export async function serveApi(config: Config): Promise<{ readonly url: string }> {
  armFailpoints(config.SLUICE_FAILPOINTS);
  const resources = openResources(config, "api");
  const obstacle = await findObstacle(resources);
  if (obstacle) throw new ConfigError(obstacle);
  const { registry } = resources.metrics;
  const metricsSource = cluster.isWorker ? metricsOfAll(registry, primaryChannel) : metricsOfOne(registry);
  const http = createHttpServer({ ...resources, metricsSource });
  const metricsServer = serveMetrics({
    // Where there are several processes, that port is their primary's.
    port: cluster.isWorker ? undefined : config.METRICS_PORT,
    host: config.HOST,
    metrics: metricsSource,
    health: createHealth(resources, () => false),
    log: resources.log,
  });

  const { drainMs } = config.tuning;
  const stop = stopOnSignals({
    log: resources.log,
    deadlineMs: drainMs,
    async stop() {
      await http.close(drainMs / 2);
      metricsServer.close();
      await resources.close(drainMs / 4);
    },
  });
  // Node would end a process at once, with all that it has under way, when its primary is gone.
  if (cluster.worker) cluster.worker.exitedAfterDisconnect = true;
  exitWithParent(() => stop("the parent process is gone"));

  const { url } = await http.listen();
  resources.log.info({ url }, "api ready");
  return { url };
}

const primaryChannel: Channel = {
  send: (message) => process.connected && process.send?.(message, undefined, undefined, () => {}),
  onMessage: (listener) => process.on("message", listener),
};
