import { parseArgs } from "node:util";
import { MEASURE_NAMES, type MeasureName } from "./names.js";

/** What a run was asked for. */
export interface BenchOptions {
  readonly measures: readonly MeasureName[];
  readonly rounds: number;
  /** everything once, and smaller */
  readonly quick: boolean;
  /** whether README.md gets the new table */
  readonly readme: boolean;
  /** processes of Sluice's API (WEB_CONCURRENCY), and of its worker */
  readonly apis: number;
  readonly workers: number;
  /** the command line that asks for the same again */
  readonly command: string;
}

/** What whoever typed the command can put right, in a line. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

const USAGE =
  "Usage: npm run bench -- [--quick] [--only <measures>] [--rounds <n>] [--apis <n>] [--workers <n>] [--readme]";
const DEFAULT_ROUNDS = 5;

export const HELP = `${USAGE}

Measures Sluice beside what it is compared with, in turns, on servers of its own,
and writes what was found to bench/results/. After every round the database is
asked whether the invariants hold: a round that breaks one has no figure. The
exit status is 0, 1 if a round has no figure, 2 for a command line that can't be
followed.

  --quick          everything once, and smaller: about three minutes
  --only <names>   some of: ${MEASURE_NAMES.slice(0, 4).join(", ")},
                   ${MEASURE_NAMES.slice(4).join(", ")}
  --rounds <n>     how often each is measured, 1 to 50 (${DEFAULT_ROUNDS})
  --apis <n>       processes of Sluice's API, 1 to 64 (1)
  --workers <n>    processes of Sluice's worker, 1 to 64 (1)
  --readme         puts the table of a whole run into README.md

--quick and --only write to bench/results/partial/, which is not kept.
`;

/** What the command line says; null for help. @throws UsageError */
export function readOptions(args: readonly string[]): BenchOptions | null {
  const { values } = parse(args);
  if (values.help) return null;
  const { quick, readme, only } = values;
  if (readme && (quick || only !== undefined)) {
    throw new UsageError(`--readme needs a whole run, without --quick and --only. ${USAGE}`);
  }
  if (quick && values.rounds !== undefined) throw new UsageError(`--quick is one round: leave out --rounds. ${USAGE}`);
  return {
    measures: only === undefined ? MEASURE_NAMES : measuresOf(only),
    rounds: quick ? 1 : count("--rounds", values.rounds ?? String(DEFAULT_ROUNDS), 50),
    quick,
    readme,
    apis: count("--apis", values.apis, 64),
    workers: count("--workers", values.workers, 64),
    command: ["npm run bench", ...(args.length > 0 ? ["--", ...args] : [])].join(" "),
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        quick: { type: "boolean", default: false },
        only: { type: "string" },
        rounds: { type: "string" },
        apis: { type: "string", default: "1" },
        workers: { type: "string", default: "1" },
        readme: { type: "boolean", default: false },
        help: { type: "boolean", default: false },
      },
    });
  } catch (error) {
    const [reason = ""] = (error as Error).message.split(/[.'] ?(?:To specify|If you|Did you)|\n/);
    throw new UsageError(`${reason.replace(/\.$/, "")}. ${USAGE}`);
  }
}

function measuresOf(text: string): MeasureName[] {
  const wanted = text.split(",").map((name) => name.trim());
  const unknown = wanted.find((name) => !(MEASURE_NAMES as readonly string[]).includes(name));
  if (unknown !== undefined) {
    throw new UsageError(`--only must name some of ${MEASURE_NAMES.join(", ")}, not "${unknown}".`);
  }
  return MEASURE_NAMES.filter((name) => wanted.includes(name));
}

function count(name: string, text: string, atMost: number): number {
  const number = Number(text);
  if (!/^[1-9]\d*$/.test(text) || number > atMost) {
    throw new UsageError(`${name} must be a number from 1 to ${atMost}, not ${text}. ${USAGE}`);
  }
  return number;
}
