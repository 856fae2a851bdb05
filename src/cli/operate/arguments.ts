/** What commands are given, as it must be; anything else is wrong usage. */
import { userInfo } from "node:os";
import { type Command, InvalidArgumentError, Option } from "commander";
import { ConfigError } from "../../config.js";
import { notFound } from "../../domain/errors.js";
import { isId } from "../../domain/ids.js";
import type { Sale } from "../../domain/model.js";
import type { SaleCache } from "../../operations/sale-cache.js";

const EXAMPLE = "npm run --silent sluice --";

/** A command of one line and one example. `name` also names its arguments. */
export function declare(program: Command, name: string, summary: string, example: string): Command {
  return program.command(name).description(summary).addHelpText("after", `\nExample: ${EXAMPLE} ${example}`);
}

/** `--reason`, for the audit log. */
export function reasonOption(): Option {
  return new Option("--reason <text>", "why, for the audit log").makeOptionMandatory();
}

/** `--actor`, for the audit log. */
export function actorOption(): Option {
  return new Option("--actor <name>", "who you are, for the audit log (default: your user on this machine)").argParser(
    (name: string) => {
      if (!isActorName(name)) {
        throw new InvalidArgumentError(`It must have 1 to ${ACTOR_AT_MOST} letters, digits, _ or -.`);
      }
      return name;
    },
  );
}

/** `--limit`. */
export function limitOption(): Option {
  return new Option("--limit <count>", "how many at most, the first of them")
    .default(20)
    .argParser(wholeNumber(1, 1_000));
}

/** A whole number in a range. */
export function wholeNumber(atLeast: number, atMost: number) {
  return (text: string): number => {
    const number = Number(text);
    if (!/^-?\d{1,15}$/.test(text) || number < atLeast || number > atMost) {
      throw new InvalidArgumentError(`It must be a whole number from ${atLeast} to ${atMost}.`);
    }
    return number;
  };
}

/** One of some names, in whatever case. */
export function oneOf<Name extends string>(names: readonly Name[]) {
  return (text: string): Name => {
    const name = names.find((name) => name === text.toUpperCase());
    if (!name) throw new InvalidArgumentError(`It must be one of ${names.join(", ").toLowerCase()}.`);
    return name;
  };
}

/**
 * The operator as the audit log has him: `cli:` is in no token's alphabet, so nobody who came over HTTP can be taken for him.
 * @throws ConfigError where the user of this machine has no name that fits
 */
export function actorOf(given: string | undefined): string {
  const name = given ?? userName();
  if (!name || !isActorName(name)) {
    throw new ConfigError("Your user's name does not fit into the audit log: say who you are with --actor.");
  }
  return `cli:${name}`;
}

/** The sale of that id. @throws SluiceError NOT_FOUND, so that a slip of the hand doesn't look like an empty list */
export async function saleOf({ sales }: { readonly sales: SaleCache }, saleId: string): Promise<Sale> {
  const sale = isId(saleId) ? await sales.read(saleId) : null;
  if (!sale) throw notFound("There is no such sale.");
  return sale;
}

/** With its prefix it fits the column. */
const ACTOR_AT_MOST = 60;

function isActorName(name: string): boolean {
  return isId(name) && name.length <= ACTOR_AT_MOST;
}

/** A container may run under a number that has no name. */
function userName(): string | null {
  try {
    return userInfo().username;
  } catch {
    return null;
  }
}
