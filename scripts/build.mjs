/** `npm run build`: dist/ with everything that `node dist/src/main.js` reads, so that production needs no TypeScript. */
import { spawnSync } from "node:child_process";
import { cpSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const dist = join(root, "dist");

// What a renamed or deleted source left behind would still be importable.
rmSync(dist, { recursive: true, force: true });

const tsc = join(root, "node_modules/typescript/bin/tsc");
const { status } = spawnSync(process.execPath, [tsc, "-p", "tsconfig.build.json"], { cwd: root, stdio: "inherit" });
if (status !== 0) process.exit(status ?? 1);

for (const folder of ["lua", "prisma/migrations"]) cpSync(join(root, folder), join(dist, folder), { recursive: true });
console.log("Built dist/");
