import { existsSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { parseFailpoints } from "../../src/lifecycle/failpoints.js";

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");
const testsIn = (text: string) => [...text.matchAll(/`(test\/[^`]+\.ts)`/g)].map(([, path = ""]) => path);

it("docs/faults.md names tests that there are, some for each fault", () => {
  const rows = read("docs/faults.md").match(/^\| \d+ \|.*$/gm) ?? [];
  expect(rows.length).toBeGreaterThan(10);
  for (const row of rows) expect(testsIn(row), row).not.toEqual([]);
  for (const path of testsIn(read("docs/faults.md"))) {
    expect(existsSync(new URL(`../../${path}`, import.meta.url)), path).toBe(true);
  }
});

it("docs/operating.md arms a failpoint as one is armed", () => {
  const [, armed = ""] =
    /SLUICE_FAILPOINTS=(\S+) node --import tsx workers\/main\.ts/.exec(read("docs/operating.md")) ?? [];
  expect(parseFailpoints(armed).size).toBe(1);
});
