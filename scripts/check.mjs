/**
 * `npm run check`: everything that can be said of the code without running it. All at once, a line each, and of those that
 * failed what they printed.
 */
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const folders = ["src", "workers", "web", "examples", "test", "scripts", "bench"].filter((folder) =>
  existsSync(`${root}/${folder}`),
);

const checks = [
  {
    name: "format and lint",
    command: ["biome", "ci", "--error-on-warnings", "--max-diagnostics=50", "--colors=off", "."],
  },
  { name: "types", command: ["tsc", "-p", "tsconfig.json", "--pretty", "false"] },
  { name: "types of the page", command: ["tsc", "-p", "web/tsconfig.json", "--pretty", "false"] },
  { name: "types of the examples", command: ["tsc", "-p", "examples/tsconfig.json", "--pretty", "false"] },
  // The compiler sees wrong uses of a result; only this sees every field, argument and variable of a document.
  {
    name: "documents of the examples",
    command: ["gql.tada", "check", "--fail-on-warn", "-c", "examples/tsconfig.json"],
  },
  { name: "schema of the examples", command: ["node", "scripts/check-examples.mjs"] },
  { name: "boundaries", command: ["depcruise", "--output-type", "err", ...folders] },
  { name: "dead code", command: ["knip", "--no-progress"] },
  { name: "printed schema", command: ["node", "--import", "tsx", "src/cli/print-schema.ts", "--check"] },
  { name: "database drift", command: ["node", "--import", "tsx", "scripts/check-drift.mjs"] },
];

const started = Date.now();
const failed = (await Promise.all(checks.map(run))).filter((result) => result.code !== 0);
for (const { name, output } of failed) console.log(`\n--- ${name}\n${output.trimEnd()}`);
console.log(
  `\n${failed.length === 0 ? "All well" : `${failed.length} of ${checks.length} failed`}, ${seconds(started)}`,
);
process.exitCode = failed.length === 0 ? 0 : 1;

/** Never rejects: what can't be started has failed. */
function run({ name, command: [program, ...args] }) {
  const startedAt = Date.now();
  return new Promise((resolve) => {
    const path = `${root}/node_modules/.bin:${process.env.PATH}`;
    const child = spawn(program, args, { cwd: root, env: { ...process.env, PATH: path, NO_COLOR: "1" } });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text) => {
        output += text;
      });
    }
    child.once("error", (error) => resolve({ name, code: -1, output: error.message }));
    child.once("close", (code) => {
      console.log(`${code === 0 ? "ok    " : "FAILED"} ${name}, ${seconds(startedAt)}`);
      resolve({ name, code, output });
    });
  });
}

function seconds(since) {
  return `${((Date.now() - since) / 1000).toFixed(1)} s`;
}
