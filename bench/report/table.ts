/** What a run has found, in Markdown. */
import { CONTENDERS, MEASURES } from "../names.js";
import { breachesOf, figuresOf, type GoalResult, type MeasureResult, type Results } from "../results.js";
import { median, medianRatio, spread } from "../statistics.js";
import { formatFigure, formatShare } from "./format.js";

/** The whole report of a run: table.md. */
export function renderReport(results: Results): string {
  const { measures, goals } = results;
  const parts = [
    "# Benchmark",
    renderRun(results),
    ...renderBreaches(measures),
    goals.length > 0 ? `## Goals\n\n${renderGoals(goals)}` : "",
    ...measures.map(renderMeasure),
  ];
  return `${parts.filter(Boolean).join("\n\n")}\n`;
}

/** What README.md shows of a run, for between its two markers. */
export function renderForReadme(results: Results): string {
  return [
    renderRun(results),
    renderAnswers(results.measures),
    ...renderBreaches(results.measures),
    renderGoals(results.goals),
  ]
    .filter(Boolean)
    .join("\n\n");
}

/** Each goal, and what was reached. */
export function renderGoals(goals: readonly GoalResult[]): string {
  const rows = goals.map(({ says, bound, value, unit, reached, met }) => {
    const verdict = met === null ? "not measured" : met ? "yes" : "**no**";
    const got = reached === null ? "no figure" : `${formatFigure(reached)} ${unit}`;
    return `| ${says} | ${bound} ${formatFigure(value)} ${unit} | ${got} | ${verdict} |`;
  });
  return ["| | goal | reached | met |", "|---|---|---|---|", ...rows].join("\n");
}

function renderRun({ at, command, rounds, full, machine }: Results): string {
  const { processor, cores, memoryGb, busyBefore, system, node, redis, postgres } = machine;
  return [
    `${at.slice(0, 10)}, \`${command}\`: ${rounds === 1 ? "one round" : `medians of ${rounds} rounds`}, contenders in turns` +
      `${full ? "" : "; not a whole run"}. Server, stores and load generator share ${cores} cores of ${processor}, ${memoryGb} GB, ${system}; load before the run ${formatFigure(busyBefore)}.`,
    `Node ${node}; Redis ${redis}; PostgreSQL ${postgres}.`,
  ].join(" ");
}

/** How answers were mixed, and how many of them were what was asked for. */
function renderAnswers(measures: readonly MeasureResult[]): string {
  const lines = measures.flatMap(({ measure, contenders }) => {
    const rounds = contenders.find(({ contender }) => contender === "sluice")?.rounds ?? [];
    const counts: Record<string, number> = {};
    for (const { answers } of rounds) {
      for (const [kind, count] of Object.entries(answers)) counts[kind] = (counts[kind] ?? 0) + count;
    }
    const total = Object.values(counts).reduce((sum, count) => sum + count, 0);
    if (total === 0) return [];
    const mix = Object.entries(counts).map(([kind, count]) => `${formatShare(count / total)} ${kind}`);
    return [`${MEASURES[measure].title.toLowerCase()}: ${mix.join(", ")}`];
  });
  const total = measures.flatMap(({ contenders }) => contenders.flatMap(({ rounds }) => rounds));
  const good = total.filter(({ figure }) => figure !== null).length;
  return `Sluice's answers — ${lines.join("; ")}. Rounds after which every invariant held: ${good} of ${total.length}.`;
}

function renderBreaches(measures: readonly MeasureResult[]): string[] {
  const breaches = breachesOf(measures);
  if (breaches.length === 0) return [];
  return [
    `**Rounds without a figure, since something was broken:**\n\n${breaches.map((line) => `- ${line}`).join("\n")}`,
  ];
}

function renderMeasure({ measure, contenders }: MeasureResult): string {
  const { title, unit } = MEASURES[measure];
  const ofSluice = figuresOf([{ measure, contenders }], measure, "sluice");
  const rows = contenders.map(({ contender, rounds }) => {
    const figures = rounds.flatMap(({ figure }) => figure ?? []);
    const middle = median(figures);
    const ratio =
      contender === "sluice"
        ? null
        : medianRatio(
            ofSluice,
            rounds.map(({ figure }) => figure),
          );
    const around = spread(figures);
    return [
      CONTENDERS[contender],
      middle === null ? "no figure" : formatFigure(middle),
      around === null || figures.length < 2 ? "" : `± ${formatShare(around)}`,
      ratio === null ? "" : formatFigure(ratio),
      detailsOf(rounds.map(({ details }) => details)),
    ].join(" | ");
  });
  return [
    `## ${title}`,
    "",
    `| | ${unit} | | Sluice to it | beside |`,
    "|---|---:|---:|---:|---|",
    ...rows.map((row) => `| ${row} |`),
  ].join("\n");
}

/** The median of each detail. */
function detailsOf(rounds: readonly Readonly<Record<string, number>>[]): string {
  const names = [...new Set(rounds.flatMap((details) => Object.keys(details)))];
  return names
    .map((name) => {
      const middle = median(rounds.flatMap((details) => details[name] ?? []));
      return middle === null ? "" : `${name} ${formatFigure(middle)}`;
    })
    .filter(Boolean)
    .join("; ");
}
