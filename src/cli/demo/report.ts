/** How a run is told, in words for a terminal. */
import type { DemoOptions } from "./arguments.js";
import type { Habit } from "./crowd.js";
import type { Target } from "./fresh-sale.js";
import { type Heard, pace, percentile } from "./heard.js";
import { SOCKETS_UNTIL_KILL, type WorkerKill } from "./kill-worker.js";
import { SOCKETS } from "./sockets.js";
import { grouped, row, wrapped } from "./text.js";
import { holds, type Judgement, type Verdict } from "./verdict.js";

/** What a run came to. */
export interface RunResult {
  readonly run: string;
  readonly target: Target;
  readonly buyers: number;
  readonly habits: Readonly<Record<Habit, number>>;
  readonly heard: Heard;
  readonly kill: WorkerKill | null;
  readonly verdict: Verdict;
  /** why the run was not carried through, each in a sentence; empty where it was */
  readonly obstacles: readonly string[];
}

/** 0 where everything was proven, 1 where something is broken or the run was not carried through. */
export function exitStatusOf({ verdict, obstacles }: RunResult): 0 | 1 {
  return holds(verdict) && obstacles.length === 0 ? 0 : 1;
}

/** What is about to happen. */
export function describeStart(
  target: Target,
  habits: Readonly<Record<Habit, number>>,
  { buyers, killWorker }: DemoOptions,
  backlogLimit: number,
): string {
  const manner = ([habit, text]: [Habit, string]) => (habits[habit] > 0 ? [`${grouped(habits[habit])} ${text}`] : []);
  const manners: [Habit, string][] = [
    ["repeats_at_once", "repeating at once,"],
    ["repeats_later", "repeating later,"],
    ["sends_two_requests", "sending two requests,"],
    ["disconnects_and_returns", "hanging up and returning,"],
    ["disconnects", "hanging up for good,"],
    ["follows", "following over WebSocket"],
  ];
  return [
    `Selling a fresh sale, ${target.saleId}: every run has its own.`,
    "",
    row("stock", [`${grouped(target.units)} units, ${grouped(target.windowSeconds)} s to pay for one`]),
    row("crowd", [`${grouped(buyers)} buyers, each with a token, over ${SOCKETS} sockets`]),
    row("", manners.flatMap(manner), " "),
    row("winners", ["70 % pay", "15 % give back", "15 % forget it", "others buy what comes back"]),
    ...(killWorker
      ? [row("worker", [`killed half-way; until then ${SOCKETS_UNTIL_KILL} of the sockets are used`])]
      : []),
    row("limits", [`BACKLOG_LIMIT ${grouped(backlogLimit)} in line, then BUSY. The demo lifts no limit.`]),
    "",
  ].join("\n");
}

/** The clients' story and the verdict, apart from each other. */
export function describeResult(result: RunResult, paint: Paint): string {
  const { verdict, obstacles } = result;
  const held = holds(verdict);
  const end = held
    ? "Nothing was oversold, nobody got two, nothing acknowledged was lost."
    : `Broken: ${verdict.invariants.flatMap(({ name, breaches }) => (breaches.length > 0 ? [name] : [])).join(" ")}`;
  return [
    "",
    paint("title", "What the clients heard"),
    "",
    ...describeHeard(result),
    "",
    paint("title", "Verdict, by the database and Redis"),
    "",
    ...describeNumbers(verdict),
    "",
    ...verdict.invariants.flatMap((judgement) => describeJudgement(judgement, paint)),
    "",
    ...obstacles.map((obstacle) => paint("bad", obstacle)),
    paint(held ? "good" : "bad", end),
    "",
  ].join("\n");
}

function describeNumbers(verdict: Verdict): string[] {
  const { orders, money } = verdict;
  const byOthers = verdict.soldAgain - verdict.paidBySecondWave;
  const others = byOthers > 0 ? `, ${grouped(byOthers)} by others` : "";
  const number = (label: string, value: number, of = "") => `  ${label.padEnd(26)}${grouped(value).padStart(6)}${of}`;
  return [
    number("units sold", verdict.sold, ` of ${grouped(verdict.units)}`),
    number("units paid for", orders.unitsPaid),
    number(
      "units that came back",
      orders.cameBack,
      `: ${grouped(orders.cancelled)} cancelled, ${grouped(orders.expired)} expired`,
    ),
    number("units sold again", verdict.soldAgain, `: ${grouped(verdict.paidBySecondWave)} by the second wave${others}`),
    number("payments on record", money.onRecord, ` of ${grouped(money.reported)} reported`),
    number("payments to give back", money.toGiveBack),
    number("units oversold", verdict.oversold),
    number("buyers with two orders", verdict.buyersTwice),
    number("requests without an end", verdict.withoutEnd),
  ];
}

/** Puts colour to a text, or none. */
export type Paint = (kind: "title" | "good" | "bad", text: string) => string;

function describeHeard({ heard, habits, kill }: RunResult): string[] {
  const { reserved, sold_out, refused, left, unanswered } = heard.endings;
  const { requests, seconds, perSecond } = pace(heard);
  const ms = (share: number) => `${grouped(Math.round(percentile(heard.latenciesMs, share)))} ms`;
  const { told, untold } = heard.followed;
  return [
    row("answers", list(heard.answers)),
    ...(heard.answers.PENDING
      ? [row("", ["PENDING: stock was held while the database was busy; they asked again"])]
      : []),
    row("errors", Object.keys(heard.errors).length > 0 ? list(heard.errors) : ["none"]),
    row(
      "buyers",
      some([
        [reserved, "got one"],
        [sold_out, "were too late"],
        [refused, "were refused"],
        [left, "hung up for good"],
        [unanswered, "had no answer"],
      ]),
    ),
    row("WebSocket", [
      `${told} heard of their order`,
      ...some([
        [habits.follows - told - untold, "were too late"],
        [untold, "were not told"],
      ]),
    ]),
    ...describePayments(heard),
    row("requests", [
      `${grouped(requests)} answered in ${seconds.toFixed(1)} s`,
      `${grouped(Math.round(perSecond))} a second`,
    ]),
    row("latency", [`p50 ${ms(0.5)}`, `p95 ${ms(0.95)}`, `p99 ${ms(0.99)}`]),
    ...(kill ? ["", ...describeKill(kill)] : []),
  ];
}

function describePayments({ settled, paymentAnswers, paidBy, secondWave }: Heard): string[] {
  const { paid, cancelled, left_unpaid, too_late, missed, unanswered } = settled;
  const winners = some([
    [paid, "paid"],
    [cancelled, "gave it back"],
    [left_unpaid, "forgot it"],
    [too_late, "paid too late"],
    [missed, "missed the time"],
    [unanswered, "had no answer"],
  ]);
  const ways = some([
    [paidBy.mutation ?? 0, "by confirmPayment"],
    [paidBy.webhook ?? 0, "by webhook"],
  ]);
  return [
    row("winners", winners.length > 0 ? winners : ["none"]),
    row("payments", [...ways, ...list(paymentAnswers)]),
    row(
      "second wave",
      secondWave.asked > 0
        ? [`${grouped(secondWave.asked)} came again`, `${grouped(secondWave.reserved)} got one`]
        : ["nobody came: all was sold before"],
    ),
  ];
}

/** Counts by name, the most frequent first. */
function list(counts: Readonly<Record<string, number>>): string[] {
  return Object.entries(counts)
    .sort(([, a], [, b]) => b - a)
    .map(([name, count]) => `${name} ${grouped(count)}`);
}

/** Those that are more than none. */
function some(counts: readonly (readonly [count: number, text: string])[]): string[] {
  return counts.flatMap(([count, text]) => (count > 0 ? [`${grouped(count)} ${text}`] : []));
}

function describeKill({ unwritten, unwrittenAtMost, next, decidedSeconds }: WorkerKill): string[] {
  const sentences = [
    `Killed with ${grouped(unwritten)} requests accepted and not yet written;`,
    `${grouped(unwrittenAtMost)} waited before they were taken up.`,
    next ? `npm start had the next one after ${next.seconds.toFixed(1)} s,` : "No other came, and",
    decidedSeconds === null ? "not all were decided." : `and all were decided after ${decidedSeconds.toFixed(1)} s.`,
  ];
  return [wrapped("worker", sentences.join(" "))];
}

const SHOWN = 3;

function describeJudgement({ name, means, breaches }: Judgement, paint: Paint): string[] {
  const word = breaches.length === 0 ? paint("good", "holds ") : paint("bad", "BROKEN");
  const lines = [`  ${name}  ${word}  ${means}`];
  for (const { what, count, shown } of breaches) {
    lines.push(wrapped("", `${what}: ${grouped(count)}`));
    for (const { id, expected, actual } of shown.slice(0, SHOWN)) {
      lines.push(wrapped("", `- ${id}: expected ${expected}, found ${actual}`));
    }
    if (count > SHOWN) lines.push(wrapped("", `- … --json shows up to twenty`));
  }
  return lines;
}
