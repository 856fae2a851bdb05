import { CommanderError } from "commander";
import { ConfigError } from "../../config.js";
import { describeDatabaseError, isContention, isDatabaseUnavailable } from "../../db/errors.js";
import { SluiceError } from "../../domain/errors.js";
import { RedisUnavailableError } from "../../redis/errors.js";
import { type Failure, plain } from "./report.js";

/** The exit statuses: done; something is wrong, in the sale or with the command; it was called in a wrong way. */
export const EXIT = { fine: 0, failed: 1, usage: 2 } as const;

/** What was thrown, in one line without a stack. */
export function failureOf(error: unknown): Failure {
  const [code, message] = codeAndMessage(error);
  return { code, message: plain(message) };
}

function codeAndMessage(error: unknown): [code: string, message: string] {
  if (error instanceof SluiceError) return [error.code, error.message];
  if (error instanceof ConfigError) return ["CONFIGURATION", error.message];
  if (error instanceof CommanderError) return ["USAGE", usageOf(error)];
  if (error instanceof RedisUnavailableError) return ["SERVICE_UNAVAILABLE", `Redis is away: ${error.message}`];
  if (isDatabaseUnavailable(error)) {
    return ["SERVICE_UNAVAILABLE", `The database is away: ${databaseSays(error)}`];
  }
  if (isContention(error)) return ["SERVICE_UNAVAILABLE", "Others were in the way again and again: try again."];
  return ["INTERNAL_SERVER_ERROR", databaseSays(error)];
}

/** Without the frame that Prisma puts around it. */
function databaseSays(error: unknown): string {
  const said = describeDatabaseError(error);
  return /Message: `(.*)`$/.exec(said)?.[1] ?? said;
}

/** commander's message; it has none where no command was named. */
function usageOf({ code, message }: CommanderError): string {
  return code === "commander.help" ? "no command was named" : message.replace(/^error: /, "");
}

/** Whether it was only help that was asked for. */
export function isHelp(error: unknown): boolean {
  return error instanceof CommanderError && error.exitCode === 0;
}
