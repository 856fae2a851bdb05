import { parseArgs } from "node:util";
import { ConfigError } from "../../config.js";

/** What the demo was asked for. */
export interface DemoOptions {
  readonly buyers: number;
  readonly units: number;
  /** how long an order may stay unpaid */
  readonly windowSeconds: number;
  readonly killWorker: boolean;
  readonly json: boolean;
}

/** More would measure how the crowd gets on, and not how Sluice does: both share this machine. */
const BUYERS_AT_MOST = 50_000;
const UNITS_AT_MOST = 50_000;
const WINDOW_AT_MOST_SECONDS = 600;

const usage = "Usage: npm run demo -- [--buyers <n>] [--units <n>] [--window <s>] [--kill-worker] [--json]";

export const HELP = `${usage}

A crowd storms a scarce item of the running Sluice (npm start, in another
terminal). Most winners pay, some give theirs back, some forget it, and a second
wave buys what came back. Then the databases are asked what has become of it.
The exit status is 0 if every invariant holds, 1 if one is broken or the run was
not finished.

  --buyers <n>    how many buyers come at once, 1 to 50000 (5000)
  --units <n>     how many units there are, 1 to 50000 (100)
  --window <s>    seconds that an order may stay unpaid, 1 to 600 (a few more
                  than the crowd takes)
  --kill-worker   kills the worker of npm start half-way with SIGKILL
  --json          prints one JSON object and nothing else: npm run --silent …
`;

/** What the command line says; null for help. @throws ConfigError with the usage in a line */
export function readArguments(args: readonly string[]): DemoOptions | null {
  const { values } = parse(args);
  if (values.help) return null;
  const buyers = count("--buyers", values.buyers, BUYERS_AT_MOST);
  const units = count("--units", values.units, UNITS_AT_MOST);
  const { window } = values;
  return {
    buyers,
    units,
    windowSeconds: window === undefined ? windowFor(buyers, units) : count("--window", window, WINDOW_AT_MOST_SECONDS),
    killWorker: values["kill-worker"],
    json: values.json,
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        buyers: { type: "string", default: "5000" },
        units: { type: "string", default: "100" },
        window: { type: "string" },
        "kill-worker": { type: "boolean", default: false },
        json: { type: "boolean", default: false },
        help: { type: "boolean", default: false },
      },
    });
  } catch (error) {
    const [reason = ""] = (error as Error).message.split(/[.'] ?(?:To specify|If you|Did you)|\n/);
    throw new ConfigError(`${reason.replace(/\.$/, "")}. ${usage}`);
  }
}

/**
 * Long enough for the first wave to be through on most machines, so that the second wave gets what was left unpaid, and for
 * whoever pays to make it.
 */
function windowFor(buyers: number, units: number): number {
  return Math.min(WINDOW_AT_MOST_SECONDS, 4 + Math.ceil(buyers / 500) + Math.ceil(units / 200));
}

function count(name: string, text: string, atMost: number): number {
  const number = Number(text);
  if (!/^[1-9]\d*$/.test(text) || number > atMost) {
    throw new ConfigError(`${name} must be a number from 1 to ${atMost}, not ${text}. ${usage}`);
  }
  return number;
}
