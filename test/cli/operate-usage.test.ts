import { CommanderError } from "commander";
import { describe, expect, it } from "vitest";
import { createProgram } from "../../src/cli/operate/program.js";
import { asJson, plain, table } from "../../src/cli/operate/report.js";
import { finished } from "../house/run.js";

/** What the program makes of a command line: how often a command was run, and what was said or thrown. */
async function parse(line: readonly string[]) {
  const said: string[] = [];
  let runs = 0;
  const write = (text: string) => void said.push(text);
  const program = createProgram(
    async () => {
      runs += 1;
    },
    { writeOut: write, writeErr: write },
  );
  const error = await program.parseAsync(line, { from: "user" }).then(
    () => null,
    (thrown: unknown) => thrown,
  );
  return { runs, said: said.join(""), error: error as CommanderError | null };
}

const words = (line: string) => [...line.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, word]) => quoted ?? word ?? "");
const commands = createProgram(async () => {}).commands.map((command) => command.name());

describe("wrong usage", () => {
  it.each([
    [[]],
    [["nonsense"]],
    [["pause", "s"]],
    [["reload", "s", "more", "--reason", "r"]],
    [["reconcile"]],
    [["reconcile", "s", "--all"]],
    [["reconcile", "s", "--bound", "soon"]],
    [["reconcile", "s", "--bound", "0"]],
    [["replay", "s", "--reason", "r"]],
    [["replay", "s", "1", "--all", "--reason", "r"]],
    [["discard", "s", "--reason", "r"]],
    [["adjust", "s", "i", "1.5", "--reason", "r"]],
    [["adjust", "s", "i", "1e3", "--reason", "r"]],
    [["refunded", "o", "r"]],
    [["refunded", "o", "r", "--restock", "--write-off"]],
    [["sales", "--state", "ajar"]],
    [["sales", "--limit", "1001"]],
    [["dead-letters", "--status", "lost"]],
    [["cancel", "o", "--reason", "r", "--actor", "olga meier"]],
    [["cancel", "o", "--reason", "r", "--actor", "x".repeat(61)]],
  ])("%j is told before anything is done", async (line) => {
    const { runs, said, error } = await parse(line);
    expect(runs).toBe(0);
    expect(error).toBeInstanceOf(CommanderError);
    expect(error?.exitCode).not.toBe(0);
    expect(said).not.toBe("");
  });

  it("is exit status 2, on standard error, in words or as JSON", async () => {
    const nothing = { DATABASE_URL: "", REDIS_URL: "", SLUICE_DATA_DIR: "/nonexistent" };
    const type = (...args: string[]) =>
      finished(process.execPath, ["--import", "tsx", "src/cli/sluice.ts", ...args], { env: nothing });
    const [inWords, asDocument, unset] = await Promise.all([
      type("reload", "s"),
      type("reload", "s", "--json"),
      type("sales"),
    ]);
    expect(inWords).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining("--reason <text>") });
    expect(asDocument).toMatchObject({ code: 2, stdout: "" });
    expect(JSON.parse(asDocument.stderr).error).toMatchObject({
      code: "USAGE",
      message: expect.stringContaining("--reason"),
    });
    expect(unset).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringMatching(/^CONFIGURATION: [^\n]+DATABASE_URL[^\n]+\n$/),
    });
  });
});

it.each(commands)("%s has help of one sentence or two, and an example that is right", async (name) => {
  const { said, error } = await parse([name, "--help"]);
  expect(error?.exitCode).toBe(0);
  expect(said).toContain("--json");
  const [, example = ""] = /\nExample: npm run --silent sluice -- (.*)\n/.exec(said) ?? [];
  expect(example.startsWith(name)).toBe(true);
  expect(await parse(words(example))).toMatchObject({ runs: 1, error: null });
});

describe("a report", () => {
  it("has aligned columns, numbers to the right, and times in UTC", () => {
    const rows = [
      ["a", 5, new Date("2030-01-02T03:04:05.678Z"), null],
      ["long\u001b[31mer", 1_000, null, "x".repeat(300)],
    ];
    expect(table(["NAME", "UNITS", "AT", "WHY"], rows).split("\n")).toEqual([
      "NAME         UNITS  AT                    WHY",
      "a                5  2030-01-02 03:04:05Z  -",
      `long [31mer   1000  -                     ${"x".repeat(199)}…`,
    ]);
  });

  it("shows no more than the words of what others have written", () => {
    expect(plain("one\r\ntwo\u0000\u202ethree\u2028four \t ")).toBe("one two three four");
  });

  it("is one JSON document, with bigints as strings", () => {
    expect(JSON.parse(asJson({ id: 12n, at: new Date(0) }))).toEqual({ id: "12", at: "1970-01-01T00:00:00.000Z" });
  });
});
