import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { labelsIn, metrics, metricsIn, TARGET_LABELS } from "./promql.js";

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");

describe("docs/metrics.md", () => {
  const rows = read("docs/metrics.md")
    .split("\n")
    .filter((line) => line.startsWith("| `"))
    .map((line) => line.split("|").map((cell) => cell.trim()));

  it("has exactly the metrics that there are, each with its type, its labels and what several processes make", () => {
    const documented = rows
      .filter(([, name]) => name?.startsWith("`sluice_"))
      .map(([, name = "", type = "", labels = "", processes = "", meaning = ""]) => {
        expect(meaning, name).not.toBe("");
        return [name.replaceAll("`", ""), { type, labels: quoted(labels).sort(), processes }] as const;
      });
    const ours = [...metrics].filter(([name]) => name.startsWith("sluice_"));
    expect(Object.fromEntries(documented)).toEqual(Object.fromEntries(ours));
    expect(documented).toHaveLength(ours.length);
  });

  it("names no metric that there isn't", () => {
    for (const [, name = "", processes] of rows.filter(([, name]) => !name?.startsWith("`sluice_"))) {
      for (const metric of quoted(name)) expect(metrics.get(metric)?.processes, metric).toBe(processes);
    }
    for (const [name] of read("docs/metrics.md").matchAll(/\bsluice_[a-z_]+/g))
      expect([...metrics.keys()]).toContain(name);
  });
});

describe("the dashboard", () => {
  interface Panel {
    readonly type: string;
    readonly title: string;
    readonly description?: string;
    readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
    readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
  }
  const dashboard = JSON.parse(read("deploy/grafana/sluice.json")) as {
    readonly uid: string;
    readonly title: string;
    readonly panels: readonly Panel[];
    readonly templating: { readonly list: readonly { readonly name: string; readonly definition?: string }[] };
  };
  const panels = dashboard.panels.filter(({ type }) => type !== "row");
  const queries = panels.flatMap(({ title, targets = [] }) => targets.map((target) => ({ title, ...target })));

  it("asks only for metrics and labels that there are", () => {
    const variables = dashboard.templating.list.flatMap(({ definition }) => definition ?? []);
    expect(queries.length).toBeGreaterThan(20);
    for (const { title, expr, legendFormat } of [
      ...queries,
      { title: "sale", expr: variables.join(), legendFormat: "" },
    ]) {
      const used = metricsIn(expr);
      expect(used.length, title).toBeGreaterThan(0);
      for (const name of used) expect([...metrics.keys()], title).toContain(name);
      const known = [...TARGET_LABELS, ...used.flatMap((name) => metrics.get(name)?.labels ?? [])];
      for (const label of [...labelsIn(expr), ...shownIn(legendFormat)])
        expect(known, `${title}: ${expr}`).toContain(label);
    }
  });

  it("shows every metric of ours", () => {
    const shown = new Set(queries.flatMap(({ expr }) => metricsIn(expr)));
    expect([...metrics.keys()].filter((name) => name.startsWith("sluice_") && !shown.has(name))).toEqual([]);
  });

  it("says in one sentence of every panel what is wrong when it moves", () => {
    for (const { title, description } of panels) expect(description, title).toMatch(/^When [^.]+\.$/);
  });

  it("lays no panel over another one", () => {
    const taken = new Set<string>();
    for (const { title, gridPos } of dashboard.panels) {
      expect(gridPos.x + gridPos.w, title).toBeLessThanOrEqual(24);
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x += 1) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y += 1) {
          expect(taken, title).not.toContain(`${x} ${y}`);
          taken.add(`${x} ${y}`);
        }
      }
    }
  });

  it("lets the reader choose a Prometheus and a sale", () => {
    expect(dashboard).toMatchObject({ uid: "sluice", title: "Sluice" });
    expect(dashboard.templating.list.map(({ name }) => name)).toEqual(["datasource", "sale"]);
    for (const { title, expr } of queries) {
      const bySale = metricsIn(expr).some((name) => metrics.get(name)?.labels.includes("sale"));
      if (bySale) expect(expr, title).toContain('sale=~"$sale"');
    }
  });
});

function shownIn(legend: string): string[] {
  return [...legend.matchAll(/\{\{ *([a-z_]+) *\}\}/g)].map(([, label = ""]) => label);
}

function quoted(cell: string): string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, text = ""]) => text);
}
