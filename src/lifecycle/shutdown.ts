import type { Logger } from "../observability/logger.js";

/**
 * Ends the process in order at SIGTERM or SIGINT: `stop` once, and an end by force at the deadline, so that a dependency
 * that hangs can't keep it. A promise that nobody waited for is told and outlived; an exception that nobody caught is not.
 */
export function stopOnSignals(options: {
  readonly log: Logger;
  readonly deadlineMs: number;
  stop(): Promise<void>;
}): (why: string) => void {
  const { log, deadlineMs } = options;
  let stopping = false;
  const stop = (why: string) => {
    if (stopping) return;
    stopping = true;
    log.info({ why }, "stopping");
    setTimeout(() => {
      log.warn({ deadlineMs }, "not everything had ended by the deadline");
      process.exit(0);
    }, deadlineMs).unref();
    options.stop().then(
      () => {
        log.info("stopped");
        process.exit(0);
      },
      (error: unknown) => {
        log.error({ err: error }, "the end was not orderly");
        process.exit(1);
      },
    );
  };
  process.on("SIGTERM", () => stop("SIGTERM"));
  process.on("SIGINT", () => stop("SIGINT"));
  process.on("unhandledRejection", (error) => log.error({ err: error }, "a failure that nobody waited for"));
  process.on("uncaughtException", (error) => {
    log.fatal({ err: error }, "an exception that nobody caught");
    process.exitCode = 1;
    process.exit();
  });
  return stop;
}
