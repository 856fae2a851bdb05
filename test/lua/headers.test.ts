import { readdirSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { SCRIPTS, type ScriptDescriptor, type ScriptName, scriptSource } from "../../src/redis/scripts.js";

const names = Object.keys(SCRIPTS) as ScriptName[];
const COUNTS = ["none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];

it("every script has a descriptor, and every descriptor a script", () => {
  const files = readdirSync(new URL("../../lua", import.meta.url)).sort();
  expect(files).toEqual(names.map((name) => SCRIPTS[name].file).sort());
});

describe.each(names)("the header of %s.lua", (name) => {
  const descriptor: ScriptDescriptor = SCRIPTS[name];
  const { keys, argv, steps, entry } = descriptor;
  const { header, code } = split(scriptSource(name));

  it("names the keys that the descriptor and the code name", () => {
    const fixed = descriptor.manyKeys ? keys.slice(0, -1) : keys;
    expect(header.filter((line) => line.startsWith("KEYS[")).map(firstWords)).toEqual([
      ...fixed.map((key, at) => `KEYS[${at + 1}] ${key}`),
      ...(descriptor.manyKeys ? [`KEYS[${keys.length}..] ${keys.at(-1)}`] : []),
    ]);
    expect(boundNames(code, "KEYS")).toEqual(fixed.map((key) => `${key}Key`));
    // Those that follow are reached by their distance from the fixed ones.
    expect(/KEYS\[(\d+) \+ entry\]/.exec(code)?.[1]).toBe(descriptor.manyKeys ? String(keys.length - 1) : undefined);
  });

  it("names the arguments that the descriptor and the code name", () => {
    const common = { title: "", argv, entry };
    const sections = [common, ...Object.entries(steps ?? {}).map(([title, step]) => ({ title, ...step }))];
    const wanted = sections.map(({ title, ...section }) => {
      const first = title === "" ? 1 : argv.length + 1;
      return {
        title,
        fixed: section.argv.map((argument, at) => `ARGV[${first + at}] ${argument}`),
        more: section.entry && {
          from: first + section.argv.length,
          count: COUNTS[section.entry.length],
          names: section.entry,
        },
      };
    });
    expect(argumentsInHeader(header)).toEqual(wanted);
    if (!steps) expect(boundNames(code, "ARGV")).toEqual(argv);
  });

  it("leaves no argument out that the code reads, and tells of none that it doesn't", () => {
    for (const { title, code: part } of parts(code, Object.keys(steps ?? {}))) {
      const own = title === "" ? { argv, entry } : steps?.[title];
      const first = title === "" ? 1 : argv.length + 1;
      const last = first + (own?.argv.length ?? 0) - 1;
      expect(numbers(part, /ARGV\[(\d+)\]/g), title).toEqual(range(first, last));
      const offsets = numbers(part, /ARGV\[at(?: \+ (\d+))?\]/g);
      const from = numbers(part, /(?:for at =|local (?:[\w, ]+, )?at = (?:KEYS\[\d \+ entry\], )?)\s*(\d+)/g)[0] ?? 0;
      const expected = own?.entry?.map((_, at) => last + 1 + at) ?? [];
      expect(
        offsets.map((offset) => from + offset),
        title,
      ).toEqual(expected);
    }
  });

  it("tells of every reply, in the shape in which the code gives it, and of no other", () => {
    const told = header.flatMap((line) => {
      const [, word, fields] = /^([A-Z][A-Z_]+)((?:, \w+)*)(?: {2}|$)/.exec(line) ?? [];
      return word === undefined ? [] : [`${word}/${fields?.split(",").length}`];
    });
    const given = [
      ...[...code.matchAll(/\{ '([A-Z_]+)'((?:, [^,{}]+)*) \}/g)].map(
        ([, word, fields]) => `${word}/${fields?.split(",").length}`,
      ),
      ...[...code.matchAll(/result = '([A-Z_]+)'/g)].map(([, word]) => `${word}/1`),
    ];
    expect(new Set(told).size).toBe(told.length);
    expect([...new Set(given)].sort()).toEqual([...told].sort());
    expect(told.map((reply) => reply.split("/")[0]).sort()).toEqual([...descriptor.replies].sort());
    // Every way out gives a reply that was seen above.
    expect(code.match(/\breturn \{/g)?.length).toBe(code.match(/\breturn \{ '[A-Z_]+'/g)?.length);
  });
});

/** The comment that a script opens with, a paragraph a line where a line goes on in the next one, and the rest. */
function split(source: string): { header: string[]; code: string } {
  const lines = source.split("\n");
  const end = lines.findIndex((line) => !line.startsWith("--"));
  const header: string[] = [];
  for (const line of lines.slice(0, end)) {
    const text = line.slice(2);
    if (/^ {4,}/.test(text)) header.push(`${header.pop()} ${text.trim()}`);
    else header.push(text.trim());
  }
  const code = lines.slice(end).map((line) => line.replace(/--.*$/, ""));
  return { header, code: code.join("\n") };
}

function firstWords(line: string): string {
  return line.split(/\s+/).slice(0, 2).join(" ");
}

/** What the header says about ARGV: for all calls, then under "of <step>:". */
function argumentsInHeader(header: readonly string[]) {
  type More = { from: number; count: string | undefined; names: string[] };
  const sections: { title: string; fixed: string[]; more: More | undefined }[] = [];
  const open = (title: string) => sections[sections.push({ title, fixed: [], more: undefined }) - 1];
  let section = open("");
  for (const line of header) {
    const title = /^of (\w+):$/.exec(line)?.[1];
    if (title !== undefined) section = open(title);
    const more = /^ARGV\[(\d+)\.\.\] (\w+) an (?:entry|item)[^:]*: (.*)$/.exec(line);
    if (more && section) {
      const list = (more[3] ?? "").replaceAll(/ \([^)]*\)/g, "").split(", ");
      section.more = { from: Number(more[1]), count: more[2], names: list };
    } else if (line.startsWith("ARGV[")) section?.fixed.push(firstWords(line));
  }
  return sections;
}

/** The local names that the code gives to KEYS[1], KEYS[2] and so on. */
function boundNames(code: string, table: "KEYS" | "ARGV"): string[] {
  const found: string[] = [];
  for (const [, locals = "", values = ""] of code.matchAll(/^local ([\w, ]+) = (.*)$/gm)) {
    const indexes = numbers(values, new RegExp(`${table}\\[(\\d+)\\]`, "g"), false);
    if (indexes.length === 0) continue;
    const bound = locals.split(", ");
    expect(bound.length, `names for ${values}`).toBe(indexes.length);
    for (const [at, index] of indexes.entries()) found[index - 1] = bound[at] ?? "";
  }
  return found;
}

/** The code cut by `if step == '…' then`: what all steps run, each step's own, and the last one's, which needs no if. */
function parts(code: string, steps: readonly string[]): { title: string; code: string }[] {
  const cut: { title: string; code: string }[] = [];
  let rest = code;
  for (const step of steps.slice(0, -1)) {
    const start = rest.indexOf(`if step == '${step}' then`);
    const end = rest.indexOf("\nend\n", start);
    expect(start, step).toBeGreaterThanOrEqual(0);
    cut.push({ title: step, code: rest.slice(start, end) });
    rest = rest.slice(0, start) + rest.slice(end);
  }
  const last = steps.at(-1);
  if (last === undefined) return [{ title: "", code: rest }];
  const start = rest.lastIndexOf("return { 'SUPERSEDED' }");
  return [{ title: "", code: rest.slice(0, start) }, ...cut, { title: last, code: rest.slice(start) }];
}

function numbers(text: string, pattern: RegExp, sorted = true): number[] {
  const found = [...text.matchAll(pattern)].map((match) => Number(match[1] ?? 0));
  return sorted ? [...new Set(found)].sort((one, other) => one - other) : found;
}

function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, at) => first + at);
}
