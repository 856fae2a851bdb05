import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
/** Beside the packages, which stay what they are: only our own files go into a bundle. */
const FOLDER = join(ROOT, "node_modules/.cache/sluice-bench");

const compiled = new Map<string, Promise<string>>();

/**
 * Makes one JavaScript file of a program, so that plain Node runs it as it runs Sluice's build. Once for each process of ours.
 *
 * @param entry from the root of the package, for example `bench/ceilings/echo.ts`
 * @returns the path of the file
 * @throws Error where it doesn't compile
 */
export function compileProgram(entry: string): Promise<string> {
  const path = compiled.get(entry) ?? compile(entry);
  compiled.set(entry, path);
  return path;
}

async function compile(entry: string): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [entry],
    absWorkingDir: ROOT,
    bundle: true,
    packages: "external",
    format: "esm",
    platform: "node",
    target: "node20",
    loader: { ".lua": "text" },
    sourcemap: "inline",
    logLevel: "warning",
    write: false,
  });
  const path = join(FOLDER, entry.replace(/\.ts$/, ".js"));
  mkdirSync(dirname(path), { recursive: true });
  // Another run may be starting the same program just now: it gets the whole file or the one before it.
  const unfinished = `${path}.${process.pid}`;
  writeFileSync(unfinished, outputFiles[0]?.contents ?? "");
  renameSync(unfinished, path);
  return path;
}
