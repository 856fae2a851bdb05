import { badUserInput } from "../domain/errors.js";
import type { Page } from "../domain/model.js";

const LARGEST_PAGE = 100;
/** The end of the year 9999: years of five digits are written differently by each store. */
const LATEST_TIME = Date.UTC(10_000, 0, 1) - 1;

/** Where a page starts: behind the row with this creation time and key. */
export interface Position {
  readonly createdAt: Date;
  readonly key: readonly string[];
}

export interface Edge<Row> {
  readonly cursor: string;
  readonly node: Row;
}

export interface Connection<Row> {
  readonly edges: readonly Edge<Row>[];
  readonly pageInfo: PageInfo;
}

export interface PageInfo {
  readonly hasNextPage: boolean;
  readonly hasPreviousPage: boolean;
  readonly startCursor: string | null;
  readonly endCursor: string | null;
}

/** How many rows to read. Throws BAD_USER_INPUT outside of 1 to 100. */
export function pageSize(first: number): number {
  if (first < 1 || first > LARGEST_PAGE) throw badUserInput(`first must be from 1 to ${LARGEST_PAGE}.`);
  return first;
}

/** A position as clients get it: opaque to them, and good for as long as its row's creation time stands. */
export function encodeCursor({ createdAt, key }: Position): string {
  return Buffer.from(JSON.stringify([createdAt.getTime(), ...key])).toString("base64url");
}

/**
 * The position that a cursor stands for; null where none is given. `parts` say what each part of its key can be: a text that
 * the database would choke on is none of ours. Throws BAD_USER_INPUT for what is no cursor of this list.
 */
export function decodeCursor(
  cursor: string | null | undefined,
  parts: readonly ((text: string) => boolean)[],
): Position | null {
  if (cursor === null || cursor === undefined) return null;
  const [time, ...key] = parsed(cursor);
  const isKey = (texts: unknown[]): texts is string[] =>
    texts.length === parts.length && parts.every((isPart, at) => typeof texts[at] === "string" && isPart(texts[at]));
  if (typeof time !== "number" || !(time >= 0 && time <= LATEST_TIME) || !isKey(key)) {
    throw badUserInput("after is not a cursor of this list.");
  }
  return { createdAt: new Date(time), key };
}

/** A page as a connection. `after` is the cursor that the page was asked for with. */
export function connectionOf<Row>(
  page: Page<Row>,
  after: string | null | undefined,
  positionOf: (row: Row) => Position,
): Connection<Row> {
  const edges = page.rows.map((row) => ({ cursor: encodeCursor(positionOf(row)), node: row }));
  return {
    edges,
    pageInfo: {
      hasNextPage: page.hasNextPage,
      // Lists are read forwards only: whoever starts behind a row has that row before him.
      hasPreviousPage: after !== null && after !== undefined,
      startCursor: edges.at(0)?.cursor ?? null,
      endCursor: edges.at(-1)?.cursor ?? null,
    },
  };
}

function parsed(cursor: string): unknown[] {
  try {
    const value: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString("utf8"));
    return Array.isArray(value) ? value : [];
  } catch {
    return [];
  }
}
