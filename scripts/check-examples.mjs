/** Whether examples/graphql-env.d.ts, by which the examples are typed, is what the schema says: part of `npm run check`. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const generate = ["generate-output", "--tsconfig", "examples/tsconfig.json"];
const committed = readFileSync(join(root, "examples/graphql-env.d.ts"), "utf8");

const folder = mkdtempSync(join(tmpdir(), "sluice-examples-"));
try {
  const output = join(folder, "graphql-env.d.ts");
  const { status, error } = spawnSync("node_modules/.bin/gql.tada", [...generate, "--output", output], {
    cwd: root,
    stdio: ["ignore", "ignore", "inherit"],
  });
  if (status !== 0) throw error ?? new Error(`gql.tada ended with ${status}`);
  if (readFileSync(output, "utf8") !== committed) {
    console.error(`examples/graphql-env.d.ts differs from the schema. Run: npx gql.tada ${generate.join(" ")}`);
    process.exitCode = 1;
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
