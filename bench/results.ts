/** What a run has found: plain data, as results.json holds it. */
import type { Machine } from "./machine.js";
import type { ContenderName, MeasureName } from "./names.js";

/** What one contender came to in one round of a measure. */
export interface Round {
  /** In the measure's unit; null where an invariant was broken or the round could not be run: then there is no figure. */
  readonly figure: number | null;
  /** What was broken, each in words. */
  readonly breaches: readonly string[];
  /** Other figures of the round, by name; their names say their units. */
  readonly details: Readonly<Record<string, number>>;
  /** How often each answer was heard. */
  readonly answers: Readonly<Record<string, number>>;
}

export interface ContenderResult {
  readonly contender: ContenderName;
  readonly rounds: readonly Round[];
}

export interface MeasureResult {
  readonly measure: MeasureName;
  readonly contenders: readonly ContenderResult[];
}

/** A goal, and what was reached of it. */
export interface GoalResult {
  readonly says: string;
  readonly bound: "at least" | "at most";
  readonly value: number;
  readonly unit: string;
  readonly reached: number | null;
  /** null where nothing was reached that could be judged */
  readonly met: boolean | null;
}

export interface Results {
  /** when the run began, ISO 8601 */
  readonly at: string;
  /** the command that gives these figures again */
  readonly command: string;
  /** false where sizes were cut down or measures left out */
  readonly full: boolean;
  readonly rounds: number;
  readonly machine: Machine;
  readonly measures: readonly MeasureResult[];
  readonly goals: readonly GoalResult[];
}

/** The figures of a contender in a measure, one a round, null where a round has none; empty where it was not measured. */
export function figuresOf(
  measures: readonly MeasureResult[],
  measure: MeasureName,
  contender: ContenderName,
): readonly (number | null)[] {
  const found = measures.find((result) => result.measure === measure);
  const rounds = found?.contenders.find((result) => result.contender === contender)?.rounds ?? [];
  return rounds.map(({ figure }) => figure);
}

/** Every breach of a run, with where it happened. */
export function breachesOf(measures: readonly MeasureResult[]): string[] {
  return measures.flatMap(({ measure, contenders }) =>
    contenders.flatMap(({ contender, rounds }) =>
      rounds.flatMap(({ breaches }, at) =>
        breaches.map((breach) => `${measure}, ${contender}, round ${at + 1}: ${breach}`),
      ),
    ),
  );
}
