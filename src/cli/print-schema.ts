/** Prints the GraphQL schema to src/graphql/schema.graphql; with --check only compares, for `npm run check`. */
import { readFileSync, writeFileSync } from "node:fs";
import { printedSchema } from "../graphql/schema.js";

const file = new URL("../graphql/schema.graphql", import.meta.url);

if (process.argv.includes("--check")) {
  if (committed() !== printedSchema()) {
    console.error("src/graphql/schema.graphql differs from the code. Run: npm run schema");
    process.exitCode = 1;
  }
} else {
  writeFileSync(file, printedSchema());
}

function committed(): string | null {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return null;
  }
}
