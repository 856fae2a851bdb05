/** A measure as bars, written by hand as SVG: a picture of a few numbers needs no library. */
import { CONTENDERS, MEASURES } from "../names.js";
import type { MeasureResult } from "../results.js";
import { median } from "../statistics.js";
import { formatFigure } from "./format.js";

const WIDTH = 760;
const LABELS = 250;
const FIGURES = 150;
const ROW = 30;
const TOP = 44;
const BAR = 18;

/** One bar for each contender that has a figure; beside it how many times as much Sluice has. */
export function renderBars({ measure, contenders }: MeasureResult): string {
  const { title, unit } = MEASURES[measure];
  const bars = contenders.map(({ contender, rounds }) => ({
    contender,
    value: median(rounds.flatMap(({ figure }) => figure ?? [])),
  }));
  const longest = Math.max(...bars.map(({ value }) => value ?? 0)) || 1;
  const sluice = bars.find(({ contender }) => contender === "sluice")?.value ?? null;
  const rows = bars.map(({ contender, value }, at) => {
    const y = TOP + at * ROW;
    const width = Math.max(1, Math.round(((value ?? 0) / longest) * (WIDTH - LABELS - FIGURES)));
    const ratio =
      sluice === null || value === null || contender === "sluice" ? "" : ` · ×${formatFigure(sluice / value)}`;
    const text = value === null ? "no figure" : `${formatFigure(value)}${ratio}`;
    const bar = `<rect x="${LABELS}" y="${y}" width="${width}" height="${BAR}" rx="2" class="${contender === "sluice" ? "ours" : "other"}"/>`;
    return [
      `<text x="${LABELS - 10}" y="${y + 14}" text-anchor="end">${escapeXml(CONTENDERS[contender])}</text>`,
      value === null ? "" : bar,
      `<text x="${LABELS + (value === null ? 0 : width) + 8}" y="${y + 14}">${escapeXml(text)}</text>`,
    ].join("");
  });
  const height = TOP + bars.length * ROW + 8;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${escapeXml(title)}">
<style>text{font:13px system-ui,sans-serif;fill:#57606a}.title{font-weight:600;font-size:15px}.ours{fill:#0a7d6c}.other{fill:#b6bec8}</style>
<text x="10" y="24" class="title">${escapeXml(`${title}, ${unit}`)}</text>
${rows.join("\n")}
</svg>
`;
}

function escapeXml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}
