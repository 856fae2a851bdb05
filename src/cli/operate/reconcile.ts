import { type Command, Option } from "commander";
import { SECOND } from "../../domain/time.js";
import { checkSale, type Finding, INVARIANTS, type SaleCheck } from "../../operations/check-sale.js";
import { reloadSale } from "../../operations/reload.js";
import { listWatchedSales } from "../../operations/watched-sales.js";
import type { Resources } from "../../resources.js";
import { actorOf, actorOption, declare, reasonOption, saleOf, wholeNumber } from "./arguments.js";
import { counted, type Failure, type Report, table } from "./report.js";
import type { Run } from "./session.js";

const BOUND_SECONDS_AT_MOST = 7 * 24 * 60 * 60;

interface Given {
  readonly all?: true;
  readonly bound: number;
}

export function addReconcile(program: Command, run: Run): void {
  const summary =
    "Checks S, U, C and T of a sale in both stores, and repairs nothing. Anything found is exit status 1.";
  declare(program, "reconcile [sale]", summary, "reconcile --all --bound 120")
    .option("--all", "all sales that Redis may hold: open, paused, closed for less than a week, or undecided")
    .addOption(
      new Option("--bound <seconds>", "how long a request may wait for its end before T is broken")
        .default(60)
        .argParser(wholeNumber(1, BOUND_SECONDS_AT_MOST)),
    )
    .action((saleId: string | undefined, given: Given, command: Command) => {
      if ((saleId === undefined) === (given.all === undefined)) command.error("error: name either a sale or --all");
      return run("both", (sluice, say) => reconcile(sluice, say, saleId, given));
    });

  declare(
    program,
    "reload <sale>",
    "Loads a sale into Redis again from the database: what repairs two stores that disagree.",
    'reload $SALE --reason "reconcile found C"',
  )
    .addOption(reasonOption())
    .addOption(actorOption())
    .action((saleId: string, given: { reason: string; actor?: string }) =>
      run("both", (sluice) => reload(sluice, saleId, given)),
    );
}

async function reconcile(
  sluice: Resources,
  say: (line: string) => void,
  saleId: string | undefined,
  given: Given,
): Promise<Report> {
  const ids =
    saleId === undefined ? (await listWatchedSales(sluice)).map(({ id }) => id) : [(await saleOf(sluice, saleId)).id];
  const checks: SaleCheck[] = [];
  for (const id of ids) {
    const check = await checkSale(sluice, id, given.bound * SECOND);
    checks.push(check);
    say(describe(check));
  }
  const failure = failureOf(checks);
  return {
    text: checks.length === 0 ? "There is no sale that Redis may hold." : "",
    json: { checks: checks.map(documentOf) },
    ...(failure && { failure }),
  };
}

function failureOf(checks: readonly SaleCheck[]): Failure | null {
  const broken = checks.filter(({ findings }) => findings.length > 0);
  const [first] = broken;
  if (!first) return null;
  const findings = broken.reduce((sum, check) => sum + check.findings.length, 0);
  const where = broken.length === 1 ? first.saleId : counted(broken.length, "sale");
  return { code: "DRIFT", message: `${counted(findings, "finding")} in ${where}. Where C is broken: sluice reload.` };
}

function describe(check: SaleCheck): string {
  const { saleId, findings, unfinished } = check;
  const { undecided, parked, eventsNotApplied, pendingInRedis } = unfinished;
  return [
    `${saleId}: ${verdictOn(check)}`,
    ...findings.map(describeFinding),
    `  in flight: ${undecided} undecided (${parked} of them given up), ${counted(eventsNotApplied, "event")} that Redis has yet to hear, ${pendingInRedis} in line in Redis`,
  ].join("\n");
}

function verdictOn({ findings, uncompared }: SaleCheck): string {
  const broken = INVARIANTS.filter((invariant) => findings.some((finding) => finding.invariant === invariant));
  const judged = INVARIANTS.filter((invariant) => invariant !== "C" || uncompared === null);
  const holding = judged.filter((invariant) => !broken.includes(invariant));
  return [
    ...(broken.length > 0 ? [`${listed(broken)} broken.`] : []),
    ...(holding.length > 0 ? [`${listed(holding)} ${holding.length === 1 ? "holds" : "hold"}.`] : []),
    ...(uncompared === "not_loaded" ? ["C could not be judged: the sale is not loaded in Redis."] : []),
    ...(uncompared === "moving" ? ["C could not be judged: the sale moves all the time. Try again."] : []),
  ].join(" ");
}

function describeFinding({ invariant, what, count, shown }: Finding): string {
  const rows = table(
    ["ID", "EXPECTED", "ACTUAL"],
    shown.map(({ id, expected, actual }) => [id, expected, actual]),
  );
  const more = count > shown.length ? [`and ${count - shown.length} more`] : [];
  const lines = [`${invariant}: ${what}`, ...[...rows.split("\n"), ...more].map((line) => `  ${line}`)];
  return lines.map((line) => `  ${line}`).join("\n");
}

function listed(names: readonly string[]): string {
  return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

function documentOf({ saleId, findings, uncompared, items, unfinished }: SaleCheck): object {
  return {
    saleId,
    holds: findings.length === 0,
    findings: findings.map(({ shown, ...finding }) => ({ ...finding, offenders: shown })),
    uncompared,
    items,
    inFlight: unfinished,
  };
}

async function reload(sluice: Resources, saleId: string, given: { reason: string; actor?: string }): Promise<Report> {
  const sale = await reloadSale(sluice, { saleId, reason: given.reason, actor: actorOf(given.actor) });
  return {
    text: `The sale is loaded again, as epoch ${sale.epoch}.`,
    json: { saleId, state: sale.state, epoch: sale.epoch },
  };
}
