/** Keeps WEB_CONCURRENCY processes of the API running on one port. It serves nothing itself but their figures. */
import cluster, { type Worker } from "node:cluster";
import type { Config } from "./config.js";
import { SECOND } from "./domain/time.js";
import type { Health, HealthAnswer } from "./lifecycle/health.js";
import { exitWithParent } from "./lifecycle/parent.js";
import { pause } from "./lifecycle/pause.js";
import { stopOnSignals } from "./lifecycle/shutdown.js";
import { createLogger } from "./observability/logger.js";
import { serveMetrics } from "./observability/metrics-server.js";
import { gatherMetrics } from "./observability/shared-metrics.js";

/** What a process tells the primary once it listens. */
export interface ReadyMessage {
  readonly sluice: "ready";
  readonly url: string;
}

/** Who lived shorter than this is started again only after a pause that grows. */
const QUICK_DEATH_MS = 30 * SECOND;
const LONGEST_PAUSE_MS = 5 * SECOND;

/**
 * Runs until it is told to stop. A process that ends is started again, however often: the others go on selling. Only
 * where the very first one doesn't come up (a setting is wrong, the port is taken) everything ends, with its status.
 */
export async function runPrimary(config: Config): Promise<void> {
  const log = createLogger({ level: config.LOG_LEVEL, name: "api-primary" });
  const metrics = gatherMetrics();
  const { drainMs } = config.tuning;
  const stopping = new AbortController();
  const running = new Set<Promise<number>>();

  const fork = (): { worker: Worker; exited: Promise<number> } => {
    const worker = cluster.fork();
    const leave = metrics.join({
      send: (message) => worker.isConnected() && worker.send(message, () => {}),
      onMessage: (listener) => worker.on("message", listener),
    });
    const exited = new Promise<number>((resolve) => {
      worker.once("exit", (code, signal) => {
        leave();
        running.delete(exited);
        if (!stopping.signal.aborted) log.error({ worker: worker.process.pid, code, signal }, "an API process ended");
        resolve(code ?? 1);
      });
    });
    running.add(exited);
    worker.on("error", (error) => log.warn({ err: error }, "trouble with an API process"));
    return { worker, exited };
  };

  const keepRunning = async (first: ReturnType<typeof fork>) => {
    let current = first;
    let pauseMs = 0;
    for (;;) {
      const startedAt = Date.now();
      await current.exited;
      pauseMs = Date.now() - startedAt < QUICK_DEATH_MS ? Math.min(pauseMs * 2 || SECOND / 10, LONGEST_PAUSE_MS) : 0;
      await pause(pauseMs, stopping.signal);
      if (stopping.signal.aborted) return;
      current = fork();
    }
  };

  const stop = stopOnSignals({
    log,
    // Longer than they take themselves.
    deadlineMs: drainMs + 2 * SECOND,
    async stop() {
      stopping.abort();
      for (const worker of Object.values(cluster.workers ?? {})) worker?.process.kill("SIGTERM");
      await Promise.all(running);
    },
  });
  exitWithParent(() => stop("the parent process is gone"));

  const first = fork();
  const started = await Promise.race([whenReady(first.worker), first.exited]);
  if (stopping.signal.aborted) return;
  // It has said itself what is wrong.
  if (typeof started === "number") process.exit(started || 1);
  const { METRICS_PORT: port, HOST: host } = config;
  serveMetrics({ port, host, metrics, health: healthOf(started.url), log });
  void keepRunning(first);
  for (let at = 1; at < config.WEB_CONCURRENCY; at++) void keepRunning(fork());
}

function whenReady(worker: Worker): Promise<ReadyMessage> {
  return new Promise((resolve) => {
    worker.on("message", (message: ReadyMessage) => message.sluice === "ready" && resolve(message));
  });
}

/** The health of the processes, as whichever is asked tells it. */
function healthOf(url: string): Health {
  return {
    alive: () => ({ httpStatus: 200, body: { status: "ok" } }),
    async ready() {
      try {
        const answer = await fetch(`${url}/ready`, { signal: AbortSignal.timeout(2 * SECOND) });
        const body = (await answer.json()) as HealthAnswer["body"];
        return { httpStatus: answer.ok ? 200 : 503, body };
      } catch {
        return { httpStatus: 503, body: { status: "unavailable" } };
      }
    },
  };
}
