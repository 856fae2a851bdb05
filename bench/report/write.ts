import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { UsageError } from "../options.js";
import type { Results } from "../results.js";
import { renderBars } from "./bars.js";
import { replaceBetweenMarkers } from "./readme.js";
import { renderForReadme, renderReport } from "./table.js";

/** Writes results.json, table.md and a plot for each measure; answers with their folder. */
export function writeReport(resultsDir: string, results: Results): string {
  const name = results.at.slice(0, 16).replace(":", "");
  const folder = join(resultsDir, ...(results.full ? [] : ["partial"]), name);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "results.json"), `${JSON.stringify(results, null, 2)}\n`);
  writeFileSync(join(folder, "table.md"), renderReport(results));
  for (const measure of results.measures) writeFileSync(join(folder, `${measure.measure}.svg`), renderBars(measure));
  return folder;
}

/** @throws UsageError where README.md has no place for the table */
export function checkMarkers(path: string): void {
  try {
    replaceBetweenMarkers(readFileSync(path, "utf8"), "");
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

/** Puts the table of a run into README.md, between its markers. */
export function updateReadme(path: string, results: Results): void {
  writeFileSync(path, replaceBetweenMarkers(readFileSync(path, "utf8"), renderForReadme(results)));
}
