/** Something that is not as it must be: an item, a buyer or a request, with what was expected of it and what it is. */
export interface Offender {
  readonly id: string;
  readonly expected: string | number;
  readonly actual: string | number;
}

/** The first offenders by id, OFFENDERS_AT_MOST of them, and how many there are. */
export interface Offenders {
  readonly count: number;
  readonly shown: readonly Offender[];
}

/** Enough to see a pattern; a sale that is wrong altogether must not fill a page. */
export const OFFENDERS_AT_MOST = 20;

/** As a query finds one: with how many there are. */
export type CountedOffender = Offender & { readonly total: number };

/** What such a query found. */
export async function bounded(query: Promise<CountedOffender[]>): Promise<Offenders> {
  const rows = await query;
  return { count: rows[0]?.total ?? 0, shown: rows.map(({ id, expected, actual }) => ({ id, expected, actual })) };
}
