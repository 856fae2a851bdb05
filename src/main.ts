/** The API process: GraphQL over HTTP, SSE and WebSocket, health and metrics on one port. */
import { ConfigError, loadConfig } from "./config.js";
import { createHttpServer } from "./http/server.js";
import { armFailpoints } from "./lifecycle/failpoints.js";
import { exitWithParent } from "./lifecycle/parent.js";
import { stopOnSignals } from "./lifecycle/shutdown.js";
import { findUnfitness } from "./redis/fitness.js";
import { openResources } from "./resources.js";

/** Redis may be away at start: then the API starts all the same, and is not ready. */
const REDIS_AT_START_MS = 1_000;

async function main(): Promise<void> {
  const config = loadConfig();
  armFailpoints(config.SLUICE_FAILPOINTS);
  const resources = openResources(config, "api");
  const unfit = await findUnfitness(resources.redis, REDIS_AT_START_MS);
  if (unfit) throw new ConfigError(unfit);
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
