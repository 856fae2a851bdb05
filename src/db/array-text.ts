/**
 * A column of values as the text of a PostgreSQL array, to be cast in the statement: `${idArray(ids)}::uuid[]`. Handed over as
 * a JavaScript array each value goes through Prisma and the driver by itself, which cost more than the statement.
 */
export function idArray(ids: readonly string[]): string {
  return `{${ids.join(",")}}`;
}

/** For numbers of any column type; they must be finite. */
export function numberArray(values: readonly number[]): string {
  return `{${values.join(",")}}`;
}

/** For times, as timestamptz[]. */
export function timeArray(times: readonly Date[]): string {
  return `{${times.map((time) => time.toISOString()).join(",")}}`;
}

/** For texts of any content: in quotes, since a bare `null` is none. */
export function textArray(values: readonly string[]): string {
  return `{${values.map((value) => `"${value.replaceAll(SPECIAL, "\\$&")}"`).join(",")}}`;
}

const SPECIAL = /["\\]/g;
