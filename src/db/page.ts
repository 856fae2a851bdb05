import type { Page } from "../domain/model.js";

/** The page of a list of which one row more than `first` was read, to see whether there is more behind it. */
export function pageOf<Row>(rows: readonly Row[], first: number): Page<Row> {
  return { rows: rows.slice(0, first), hasNextPage: rows.length > first };
}
