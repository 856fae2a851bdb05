/** What Sluice wants to reach, against what was measured beside it in the same run. */
import type { ContenderName, MeasureName } from "./names.js";
import { figuresOf, type GoalResult, type MeasureResult } from "./results.js";
import { median, medianRatio } from "./statistics.js";

interface Goal {
  readonly says: string;
  readonly measure: MeasureName;
  readonly bound: "at least" | "at most";
  readonly value: number;
  readonly unit: string;
  /** null where it was not measured, or has no figure */
  reached(measures: readonly MeasureResult[]): number | null;
}

const atLeastTimes = (value: number, measure: MeasureName, other: ContenderName, says: string): Goal => ({
  says,
  measure,
  bound: "at least",
  value,
  unit: "times",
  reached: (measures) => medianRatio(figuresOf(measures, measure, "sluice"), figuresOf(measures, measure, other)),
});

const atMost = (value: number, unit: string, measure: MeasureName, says: string): Goal => ({
  says,
  measure,
  bound: "at most",
  value,
  unit,
  reached: (measures) => median(figuresOf(measures, measure, "sluice").filter((figure) => figure !== null)),
});

/** Of a detail, where one round that misses it is one too many. */
const detailAtMost = (value: number, unit: string, measure: MeasureName, detail: string, says: string): Goal => ({
  says,
  measure,
  bound: "at most",
  value,
  unit,
  reached(measures) {
    const results = measures.find((result) => result.measure === measure)?.contenders ?? [];
    const values = results.flatMap(({ rounds }) => rounds.flatMap(({ details }) => details[detail] ?? []));
    return values.length > 0 ? Math.max(...values) : null;
  },
});

const GOALS: readonly Goal[] = [
  atLeastTimes(0.5, "sold-out", "echo", "refusals a second, sold out, of what node:http echoes"),
  atLeastTimes(
    6,
    "sold-out",
    // Not the one that is left as it comes: it is several times slower, for its limit on bodies.
    "yoga-noop-lean",
    "refusals a second, sold out, of what GraphQL Yoga answers without any work or limit",
  ),
  atLeastTimes(4, "decided", "straightforward", "reservations accepted and decided, of the straightforward build's"),
  atLeastTimes(8, "decided", "round-1", "reservations accepted and decided, of round 1's"),
  atLeastTimes(12, "queue", "straightforward", "orders written from a full queue, of one transaction a job"),
  atLeastTimes(0.45, "queue", "noop-worker", "orders written from a full queue, of jobs without any work"),
  atMost(10, "times", "half-peak", "p99 at half its own peak, of a lone request's p50"),
  atMost(1.3, "times", "size", "a reservation's cost with 1,000,000 in the sale, of that with 1,000"),
  atMost(600, "bytes", "redis-memory", "Redis memory a decided reservation"),
  atMost(250, "MB", "api-memory", "resident memory of the API through 200,000 refusals"),
  detailAtMost(
    1.1,
    "times",
    "api-memory",
    "last quarter over second quarter",
    "the same, its last quarter of its second",
  ),
  atMost(25, "KB", "subscriptions", "memory an open WebSocket subscription"),
];

/** The goals whose measures were run. */
export function judgeGoals(measures: readonly MeasureResult[]): GoalResult[] {
  return GOALS.filter(({ measure }) => measures.some((result) => result.measure === measure)).map((goal) => {
    const { says, bound, value, unit } = goal;
    const reached = goal.reached(measures);
    const met = reached === null ? null : bound === "at least" ? reached >= value : reached <= value;
    return { says, bound, value, unit, reached, met };
  });
}
