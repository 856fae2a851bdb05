import { mkdirSync, readdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = fileURLToPath(new URL("../..", import.meta.url));

/**
 * Our programs as JavaScript, file by file as they are, in a folder of their own beside what they read: some hundred of them
 * are started in a run of the tests, and translating them at each start took a second of processor each.
 */
export async function compileSources(folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true });
  await build({
    entryPoints: ["src", "workers"].flatMap(sourcesIn),
    absWorkingDir: root,
    outbase: root,
    outdir: folder,
    format: "esm",
    platform: "node",
    target: "node20",
    logLevel: "warning",
  });
  for (const name of ["node_modules", "lua", "prisma", "package.json"])
    symlinkSync(join(root, name), join(folder, name));
}

function sourcesIn(folder: string): string[] {
  const names = readdirSync(join(root, folder), { recursive: true, encoding: "utf8" });
  return names.filter((name) => name.endsWith(".ts")).map((name) => join(folder, name));
}

/** Where a program of ours was compiled to; null for one of the tests' own, which are run as they are. */
export function compiledPath(folder: string, entry: string): string | null {
  return folder && /^(src|workers)\//.test(entry) ? join(folder, entry.replace(/\.ts$/, ".js")) : null;
}
