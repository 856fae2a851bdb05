/** The alarms, and the runbook that has a section for each. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { labelsIn, metrics, metricsIn, TARGET_LABELS } from "./promql.js";

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly runbook_url: string };
}

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");
const { groups } = parse(read("deploy/alerts.yml")) as { groups: { name: string; rules: Rule[] }[] };
const rules = groups.flatMap(({ rules }) => rules);

describe("deploy/alerts.yml", () => {
  it("names each alarm once, says who is woken, and leads to its section of the runbook", () => {
    expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
    for (const { alert, labels, annotations, ...rest } of rules) {
      expect(alert).toMatch(/^Sluice([A-Z][a-z]+)+$/);
      expect(Object.keys(rest).filter((key) => !["expr", "for"].includes(key))).toEqual([]);
      expect([alert, rest.for ?? "0s"]).toEqual([alert, expect.stringMatching(/^\d+[sm]$/)]);
      expect([alert, labels]).toEqual([alert, { severity: expect.stringMatching(/^(page|ticket)$/) }]);
      expect(annotations).toEqual({
        summary: expect.stringMatching(/\S/),
        runbook_url: `docs/runbook.md#${alert.toLowerCase()}`,
      });
    }
  });

  it("asks only for metrics, labels and outcomes that there are", () => {
    for (const { alert, expr } of rules) {
      const used = metricsIn(expr);
      expect(used.length, alert).toBeGreaterThan(0);
      for (const name of used) expect([...metrics.keys()], alert).toContain(name);
      const known = [...TARGET_LABELS, ...used.flatMap((name) => metrics.get(name)?.labels ?? [])];
      for (const label of labelsIn(expr)) expect(known, alert).toContain(label);
    }
    const outcomes = read("src/operations/reserve-outcome.ts") + read("src/domain/errors.ts").toLowerCase();
    const [, turnedAway = ""] = /outcome=~"([^"]+)"/.exec(ruleOf("SluiceBuyersTurnedAway").expr) ?? [];
    for (const outcome of turnedAway.split("|").filter((outcome) => outcome !== "error"))
      expect(outcomes).toContain(`"${outcome}"`);
  });

  it("tells in its sentence only what the expression leaves", () => {
    for (const { alert, expr, annotations } of rules) {
      const left = [...labelsIn(expr.replace(/[a-z_]+=~"[^"]*"/g, "")), ...TARGET_LABELS];
      for (const [, label = ""] of annotations.summary.matchAll(/\$labels\.([a-z_]+)/g))
        expect(left, alert).toContain(label);
    }
  });

  it("takes of what each process has measured the highest or the lowest, as the metric says, and never adds it up", () => {
    for (const { alert, expr } of rules) {
      for (const name of metricsIn(expr)) {
        const processes = metrics.get(name)?.processes ?? "";
        if (["max", "min"].includes(processes))
          expect(expr, alert).toMatch(new RegExp(`\\b${processes}\\b[^)]*\\)? *\\(?${name}`));
      }
    }
  });

  it("is what docker-compose's Prometheus loads", () => {
    const config = parse(read("deploy/prometheus.yml")) as { rule_files: string[] };
    const { services } = parse(read("docker-compose.yml")) as { services: { prometheus: { volumes: string[] } } };
    expect(services.prometheus.volumes).toContain(`./deploy/alerts.yml:${config.rule_files[0]}:ro`);
  });
});

describe("docs/runbook.md", () => {
  const sections = read("docs/runbook.md").split(/^## /m).slice(1);
  const titleOf = (section: string) => section.slice(0, section.indexOf("\n"));

  it("has a section for every alarm, in their order, and none for what there isn't", () => {
    expect(sections.map(titleOf).filter((title) => title.startsWith("Sluice"))).toEqual(
      rules.map(({ alert }) => alert),
    );
  });

  it("says in each how bad it is, what it means, what to look at, what to do, and when it is over", () => {
    for (const section of sections.filter((section) => section.startsWith("Sluice"))) {
      const { alert, labels } = ruleOf(titleOf(section));
      expect(section.split("\n")[2], alert).toMatch(new RegExp(`^\\*${labels.severity}\\*\\. \\S`));
      for (const part of ["**Look.**", "**Do.**", "**Over**"]) expect(section, alert).toContain(`\n${part} `);
      expect(section, alert).toContain("```sh\n");
    }
  });
});

function ruleOf(name: string): Rule {
  const rule = rules.find(({ alert }) => alert === name);
  if (!rule) throw new Error(`there is no alarm ${name}`);
  return rule;
}
