import { GraphQLError } from "graphql";
import { parseUuid } from "../domain/ids.js";
import { builder } from "./builder.js";

const RFC_3339 = /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})(?:\.\d+)?(?:Z|[+-]([01]\d|2[0-3]):[0-5]\d)$/i;

builder.scalarType("DateTime", {
  description: "RFC 3339, UTC, milliseconds",
  serialize: (value) => value.toISOString(),
  parseValue: (value) => {
    const date = typeof value === "string" ? parseDateTime(value) : null;
    if (!date) throw new GraphQLError("DateTime must look like 2026-11-27T09:00:00.000Z, with Z or an offset.");
    return date;
  },
});

builder.scalarType("UUID", {
  description: "8-4-4-4-12 hexadecimal text; upper case is accepted and lowered",
  serialize: (value) => value,
  parseValue: (value) => {
    const uuid = typeof value === "string" ? parseUuid(value) : null;
    if (!uuid) throw new GraphQLError("UUID must look like 123e4567-e89b-42d3-a456-426614174000.");
    return uuid;
  },
});

/** The instant that an RFC 3339 text names, or null. A date that no calendar has is refused: Date.parse makes March of February 30. */
export function parseDateTime(text: string): Date | null {
  const parts = RFC_3339.exec(text);
  if (!parts) return null;
  const [year, month, day, hour, minute, second] = parts.slice(1, 7).map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  if (hour > 23 || minute > 59 || second > 59 || day < 1 || day > daysIn(year, month)) return null;
  const date = new Date(text.toUpperCase());
  return Number.isNaN(date.getTime()) ? null : date;
}

function daysIn(year: number, month: number): number {
  if (month < 1 || month > 12) return 0;
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
  return [4, 6, 9, 11].includes(month) ? 30 : 31;
}

/** GraphQL's Int ends here. */
const LARGEST_INT = 2 ** 31 - 1;

/**
 * The number, or the largest that can be said: a sale that opens in more than 24.8 days has a longer wait, and one that
 * was loaded more than two thousand times a higher version. An answer at the limit beats none.
 */
export function fitInt(value: number): number {
  return Math.min(value, LARGEST_INT);
}
