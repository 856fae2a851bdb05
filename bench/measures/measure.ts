import type { LoadResult } from "../load/plan.js";
import type { ContenderName, MeasureName } from "../names.js";
import type { Round } from "../results.js";
import type { Bench, CpuUse } from "../trial.js";

/** One thing that is measured, of each of its contenders in turn. */
export interface Measure {
  readonly name: MeasureName;
  readonly contenders: readonly ContenderName[];
  /** Measures one contender once. What it throws is a breach: the round could not be finished. */
  round(bench: Bench, contender: ContenderName): Promise<Round>;
}

/** The contenders that take orders, the plainest last. */
export const SHOPS = ["sluice", "straightforward", "round-3", "round-2", "round-1"] as const;

/** A round as it is reported: without a figure where anything was broken. */
export function roundOf(
  figure: number,
  breaches: readonly string[],
  details: Readonly<Record<string, number>> = {},
  answers: Readonly<Record<string, number>> = {},
): Round {
  return { figure: breaches.length === 0 ? figure : null, breaches, details, answers };
}

/** What a buyer hears whose request was accepted, by this call or an earlier one. */
export const ACCEPTED = ["QUEUED", "DECIDED"] as const;

export function acceptedOf(answers: Readonly<Record<string, number>>): number {
  return ACCEPTED.reduce((sum, kind) => sum + (answers[kind] ?? 0), 0);
}

/** What a load's answers say, each in words, that were not what the measure is of. */
export function unexpected(
  what: string,
  answers: Readonly<Record<string, number>>,
  expected: readonly string[],
): string[] {
  return Object.entries(answers)
    .filter(([kind]) => !expected.includes(kind))
    .map(([kind, count]) => `${what}: ${count} answers were ${kind}`);
}

/** Processor time of each kind of process between two readings, in microseconds for each of `count`. */
export function cpuEach(before: CpuUse, after: CpuUse, count: number): Record<string, number> {
  return Object.fromEntries(
    (Object.keys(after) as (keyof CpuUse)[])
      .map((name) => [`cpu ${name}, µs each`, ((after[name] - before[name]) * 1e6) / count] as const)
      .filter(([, microseconds]) => microseconds > 0),
  );
}

/** What a load tells of itself beside its answers. */
export function loadDetails({ latencyMs, cpuSeconds, requests }: LoadResult): Record<string, number> {
  return {
    "p50, ms": latencyMs.p50,
    "p99, ms": latencyMs.p99,
    "max, ms": latencyMs.max,
    "cpu load generator, µs each": (cpuSeconds * 1e6) / requests,
  };
}
