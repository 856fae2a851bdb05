/** The API: one process, or WEB_CONCURRENCY of them on one port and a primary that keeps them running. */
import cluster from "node:cluster";
import { ConfigError, loadConfig } from "./config.js";
import { type ReadyMessage, runPrimary } from "./primary.js";
import { serveApi } from "./serve-api.js";

async function main(): Promise<void> {
  const config = loadConfig();
  if (config.WEB_CONCURRENCY > 1 && cluster.isPrimary) return runPrimary(config);
  const { url } = await serveApi(config);
  if (cluster.isWorker) process.send?.({ sluice: "ready", url } satisfies ReadyMessage);
}

main().catch((error: NodeJS.ErrnoException) => {
  const say = (line: string) => process.stderr.write(`${line}\n`);
  if (error instanceof ConfigError) say(error.message);
  else if (error.code === "EADDRINUSE") say(`${error.message}. Start on another port: PORT=4001`);
  else say(error.stack ?? String(error));
  process.exit(1);
});
