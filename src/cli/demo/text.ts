/** How numbers and tables look: aligned, and within the eighty columns of a terminal. */
const COLUMNS = 80;
const LABEL = 13;

const groups = new Intl.NumberFormat("en-US");

/** 4900 as 4,900. */
export function grouped(number: number): string {
  return groups.format(number);
}

/** A row of a table: the label, and its parts over as many lines as they need. */
export function row(label: string, parts: readonly string[], between = "   "): string {
  const lines: string[] = [];
  for (const part of parts) {
    const last = lines.at(-1);
    const longer = last === undefined ? part : `${last}${between}${part}`;
    if (last !== undefined && longer.length + LABEL + 2 <= COLUMNS) lines[lines.length - 1] = longer;
    else lines.push(part);
  }
  return lines.map((line, at) => `  ${(at === 0 ? label : "").padEnd(LABEL)}${line}`.trimEnd()).join("\n");
}

/** A sentence over as many lines as it needs. */
export function wrapped(label: string, sentence: string): string {
  return row(label, sentence.split(" "), " ");
}
