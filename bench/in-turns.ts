import type { Measure } from "./measures/measure.js";
import { type ContenderName, MEASURES } from "./names.js";
import { formatFigure } from "./report/format.js";
import type { MeasureResult, Round } from "./results.js";
import type { Bench } from "./trial.js";

/**
 * Measures the contenders in turns, A B C A B C: what disturbs the machine for some minutes meets all of them. A round that
 * can't be finished has no figure, and the others go on.
 *
 * @param interrupted once it is aborted, no further round begins, and what was thrown is thrown on
 */
export async function measureInTurns(
  bench: Bench,
  measure: Measure,
  rounds: number,
  interrupted: AbortSignal,
): Promise<MeasureResult> {
  const { title, unit } = MEASURES[measure.name];
  bench.say(`\n${title}, ${unit}`);
  const found = new Map<ContenderName, Round[]>(measure.contenders.map((contender) => [contender, []]));
  for (let at = 1; at <= rounds; at += 1) {
    for (const contender of measure.contenders) {
      interrupted.throwIfAborted();
      const round = await measure.round(bench, contender).catch((error: unknown) => {
        interrupted.throwIfAborted();
        return unfinished(error);
      });
      found.get(contender)?.push(round);
      const figure = round.figure === null ? "NO FIGURE" : formatFigure(round.figure);
      bench.say(`  round ${at}/${rounds}  ${contender.padEnd(16)} ${figure.padStart(10)}`);
      for (const breach of round.breaches) bench.say(`    ${breach}`);
    }
  }
  return {
    measure: measure.name,
    contenders: [...found].map(([contender, results]) => ({ contender, rounds: results })),
  };
}

function unfinished(error: unknown): Round {
  const message = error instanceof Error ? error.message : String(error);
  return { figure: null, breaches: [message], details: {}, answers: {} };
}
