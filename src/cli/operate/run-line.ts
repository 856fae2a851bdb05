import type { Config } from "../../config.js";
import { EXIT, failureOf, isHelp } from "./failure.js";
import { createProgram } from "./program.js";
import { asJson, type Failure } from "./report.js";
import { inSession, type Run } from "./session.js";

/** Where a command line is run. */
export interface Terminal {
  /** The running configuration. @throws ConfigError */
  config(): Config;
  /** standard output and standard error */
  out(text: string): void;
  err(text: string): void;
}

/** Runs one command line, and tells what came of it: to people, or with --json to machines. Answers with the exit status. */
export async function runLine(args: readonly string[], terminal: Terminal): Promise<number> {
  // Asked before anything is parsed: wrong usage is told in the same way.
  const json = args.includes("--json");
  const say = (line: string) => terminal.out(`${line}\n`);
  const tell = (failure: Failure) =>
    terminal.err(json ? `${JSON.stringify({ error: failure })}\n` : `${failure.code}: ${failure.message}\n`);
  let status: number = EXIT.fine;

  const run: Run = async (needs, work) => {
    const report = await inSession(terminal.config(), needs, json ? () => {} : say, work);
    if (json) terminal.out(asJson(report.json));
    else if (report.text) say(report.text);
    if (!report.failure) return;
    tell(report.failure);
    status = EXIT.failed;
  };
  const program = createProgram(run, {
    writeOut: (text) => terminal.out(text),
    writeErr: json ? () => {} : (text) => terminal.err(text),
  });
  try {
    await program.parseAsync(args, { from: "user" });
    return status;
  } catch (error) {
    if (isHelp(error)) return EXIT.fine;
    const failure = failureOf(error);
    const isUsage = failure.code === "USAGE";
    // In words, commander has told it already.
    if (json || !isUsage) tell(failure);
    return isUsage ? EXIT.usage : EXIT.failed;
  }
}
