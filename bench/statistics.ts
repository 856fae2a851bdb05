/** The middle value; of an even number of values the mean of the two in the middle. Null where there is none. */
export function median(values: readonly number[]): number | null {
  if (values.length === 0) return null;
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] as number;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] as number) + upper) / 2;
}

/**
 * How many times as much the first is: the median over the rounds of each round's own ratio, since what disturbs a machine
 * for some minutes disturbs both. Rounds in which either has no figure are left out; null where none is left.
 */
export function medianRatio(figures: readonly (number | null)[], others: readonly (number | null)[]): number | null {
  return median(
    figures.flatMap((figure, round) => {
      const other = others[round];
      return figure === null || other === null || other === undefined || other === 0 ? [] : [figure / other];
    }),
  );
}

/** By how much values differ from their median at the most, as a share of it. */
export function spread(values: readonly number[]): number | null {
  const middle = median(values);
  if (middle === null || middle === 0) return null;
  return Math.max(...values.map((value) => Math.abs(value - middle))) / middle;
}
