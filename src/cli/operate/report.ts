/** What a command has to say, to people and to machines. */
export interface Report {
  /** lines for people */
  readonly text: string;
  /** one document for machines; bigints become strings, dates are ISO 8601 */
  readonly json: object;
  /** what is wrong though the command did its work: told on standard error, and exit status 1 */
  readonly failure?: Failure;
}

/** Why a command did not do what it was asked, or what it found. */
export interface Failure {
  /** stable: the API's codes, and CONFIGURATION, USAGE, DRIFT */
  readonly code: string;
  /** one line */
  readonly message: string;
}

/** A document as it is printed. */
export function asJson(document: object): string {
  return `${JSON.stringify(document, (_key, value: unknown) => (typeof value === "bigint" ? String(value) : value), 2)}\n`;
}

export type Cell = string | number | bigint | Date | null;

/** Aligned columns under a header, numbers to the right; null is a dash. */
export function table(header: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const body = rows.map((row) => row.map(textOf));
  const widths = header.map((name, column) => Math.max(name.length, ...body.map((row) => (row[column] ?? "").length)));
  const isNumeric = header.map((_, column) => isOfNumbers(rows.map((row) => row[column] ?? null)));
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, column) =>
        isNumeric[column] ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0),
      )
      .join("  ")
      .trimEnd();
  return [header, ...body].map(line).join("\n");
}

/** A time as people read it: UTC, to the second. */
export function timeOf(date: Date): string {
  return `${date.toISOString().slice(0, 19).replace("T", " ")}Z`;
}

/** One line, without what could move a terminal's cursor: titles, reasons and errors are written by others. */
export function plain(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu, " ").trim();
}

/** 1 unit, 2 units. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

const CELL_AT_MOST = 200;

function textOf(cell: Cell): string {
  if (cell === null) return "-";
  if (cell instanceof Date) return timeOf(cell);
  const text = plain(String(cell));
  return text.length > CELL_AT_MOST ? `${text.slice(0, CELL_AT_MOST - 1)}…` : text;
}

function isOfNumbers(cells: readonly Cell[]): boolean {
  const given = cells.filter((cell) => cell !== null);
  return given.length > 0 && given.every((cell) => typeof cell === "number" || typeof cell === "bigint");
}
