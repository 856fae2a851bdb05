/** The worker process: writes orders, and runs the loops that mend what others left half done. */
import { ConfigError, loadConfig } from "../src/config.js";
import { armFailpoints } from "../src/lifecycle/failpoints.js";
import { createHealth } from "../src/lifecycle/health.js";
import { exitWithParent } from "../src/lifecycle/parent.js";
import { stopOnSignals } from "../src/lifecycle/shutdown.js";
import { serveMetrics } from "../src/observability/metrics-server.js";
import { metricsOfOne } from "../src/observability/shared-metrics.js";
import { findObstacle } from "../src/preflight.js";
import { openResources } from "../src/resources.js";
import { startLoops } from "./loops.js";
import { serveQueues } from "./serve-queues.js";

async function main(): Promise<void> {
  const config = loadConfig();
  armFailpoints(config.SLUICE_FAILPOINTS);
  const resources = openResources(config, "worker");
  const obstacle = await findObstacle(resources);
  if (obstacle) throw new ConfigError(obstacle);
  const queues = serveQueues(resources);
  const loops = startLoops(resources, queues);
  const { METRICS_PORT: port, HOST: host } = config;
  const { log } = resources;
  const health = createHealth(resources, () => false);
  const metrics = metricsOfOne(resources.metrics.registry);
  const metricsServer = serveMetrics({ port, host, metrics, health, log });

  const { drainMs } = config.tuning;
  const stop = stopOnSignals({
    log,
    deadlineMs: drainMs,
    async stop() {
      await Promise.all([queues.close(drainMs / 2), ...loops.map((loop) => loop.stop())]);
      metricsServer.close();
      await resources.close(drainMs / 4);
    },
  });
  exitWithParent(() => stop("the parent process is gone"));
  log.info("worker ready");
}

main().catch((error: Error) => {
  process.stderr.write(`${error instanceof ConfigError ? error.message : (error.stack ?? error)}\n`);
  process.exit(1);
});
