/** The API process: GraphQL over HTTP, SSE and WebSocket, health and metrics on one port. */
import { ConfigError, loadConfig } from "./config.js";
import { createHttpServer } from "./http/server.js";
import { armFailpoints } from "./lifecycle/failpoints.js";
import { exitWithParent } from "./lifecycle/parent.js";
import { stopOnSignals } from "./lifecycle/shutdown.js";
import { findObstacle } from "./preflight.js";
import { openResources } from "./resources.js";

async function main(): Promise<void> {
  const config = loadConfig();
  armFailpoints(config.SLUICE_FAILPOINTS);
  const resources = openResources(config, "api");
  const obstacle = await findObstacle(resources);
  if (obstacle) throw new ConfigError(obstacle);
  const http = createHttpServer(resources);

  const { drainMs } = config.tuning;
  const stop = stopOnSignals({
    log: resources.log,
    deadlineMs: drainMs,
    async stop() {
      await http.close(drainMs / 2);
      await resources.close(drainMs / 4);
    },
  });
  exitWithParent(() => stop("the parent process is gone"));

  const { url } = await http.listen();
  resources.log.info({ url }, "api ready");
}

main().catch((error: NodeJS.ErrnoException) => {
  const say = (line: string) => process.stderr.write(`${line}\n`);
  if (error instanceof ConfigError) say(error.message);
  else if (error.code === "EADDRINUSE") say(`${error.message}. Start on another port: PORT=4001`);
  else say(error.stack ?? String(error));
  process.exit(1);
});
