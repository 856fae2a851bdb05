/** The storefront page of the demo, bundled for the browser at each start: it takes milliseconds, and is never stale. */
import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";

/** Bundles web/ into the data directory, where the API serves it from. Throws where it doesn't compile. */
export async function buildPage(root: string, dataDir: string): Promise<void> {
  const source = join(root, "web");
  const outdir = join(dataDir, "page");
  rmSync(outdir, { recursive: true, force: true });
  mkdirSync(outdir, { recursive: true });
  const assets = readdirSync(source).filter((name) => /\.(html|css|svg)$/.test(name));
  await build({
    entryPoints: [join(source, "main.ts"), ...assets.map((name) => join(source, name))],
    outdir,
    bundle: true,
    format: "esm",
    platform: "browser",
    target: "es2022",
    minify: true,
    loader: { ".html": "copy", ".svg": "copy" },
    logLevel: "silent",
  });
}
