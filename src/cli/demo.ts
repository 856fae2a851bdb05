/** `npm run demo`: a crowd storms a scarce item of the running `npm start`, and the databases are asked what became of it. */
import { styleText } from "node:util";
import { ConfigError } from "../config.js";
import { describeDatabaseError, isDatabaseUnavailable } from "../db/errors.js";
import { RedisUnavailableError } from "../redis/errors.js";
import { HELP, readArguments } from "./demo/arguments.js";
import { DemoFailure } from "./demo/failure.js";
import { noProgress, type Progress, showProgress } from "./demo/progress.js";
import { describeResult, exitStatusOf, type Paint } from "./demo/report.js";
import { asJson } from "./demo/report-json.js";
import { runDemo, type Screen } from "./demo/run.js";
import { findRunningSluice } from "./demo/running-sluice.js";

const { stdout, stderr } = process;
let progress: Progress = noProgress;

// Whoever reads along may have seen enough.
for (const stream of [stdout, stderr]) stream.on("error", () => {});
for (const [signal, status] of [["SIGINT", 130] as const, ["SIGTERM", 143] as const]) {
  process.once(signal, () => {
    progress.stop();
    stderr.write("Stopped. What was accepted until now is finished by Sluice all the same.\n");
    process.exit(status);
  });
}

try {
  const options = readArguments(process.argv.slice(2));
  if (!options) stdout.write(HELP);
  else {
    const result = await runDemo(options, await findRunningSluice(), screenFor(options.json));
    stdout.write(options.json ? `${JSON.stringify(asJson(result), null, 2)}\n` : describeResult(result, painter()));
    process.exitCode = exitStatusOf(result);
  }
} catch (error) {
  process.exitCode = 1;
  progress.stop();
  stderr.write(`${lineOf(error)}\n`);
}

/** What went wrong in a line; a fault of our own is thrown on. */
function lineOf(error: unknown): string {
  if (error instanceof ConfigError || error instanceof DemoFailure) return error.message;
  if (error instanceof RedisUnavailableError) return `The run could not be finished, Redis is away: ${error.message}`;
  if (isDatabaseUnavailable(error)) {
    return `The run could not be finished, the database is away: ${describeDatabaseError(error)}`;
  }
  throw error;
}

/** With --json standard output is for the object alone, and a person who watches is told on standard error. */
function screenFor(json: boolean): Screen {
  const stream = json ? stderr : stdout;
  if (json && !stderr.isTTY) return { say() {}, startProgress: () => noProgress };
  return {
    say: (text) => void stream.write(`${text}\n`),
    startProgress(full) {
      progress = showProgress(stream, full);
      return progress;
    },
  };
}

function painter(): Paint {
  if (!stdout.isTTY || !stdout.hasColors()) return (_kind, text) => text;
  const styles = { title: "bold", good: "green", bad: "red" } as const;
  return (kind, text) => styleText(styles[kind], text);
}
