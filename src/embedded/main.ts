/** `npm start`: PostgreSQL, Redis, the API and a worker on this machine, with nothing to install or configure first. */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ConfigError, readStartSettings } from "../config.js";
import { MigrationError } from "../db/migrate.js";
import { SECOND } from "../domain/time.js";
import { StartFailure } from "./failure.js";
import { start } from "./start.js";

const root = fileURLToPath(new URL("../../", import.meta.url));
const stop = new AbortController();
const hurry = new AbortController();
let unexpected: unknown;
let stopAskedAt = 0;

// One Ctrl-C arrives twice: from the terminal and from npm, which passes it on. Only a later one is a second.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.on(signal, () => {
    if (stop.signal.aborted && Date.now() - stopAskedAt > SECOND) hurry.abort();
    if (!stop.signal.aborted) stopAskedAt = Date.now();
    stop.abort();
  });
}
process.on("uncaughtException", (error) => {
  unexpected ??= error;
  stop.abort();
});
// Whoever ends npm means us too, also with a SIGKILL that npm can't pass on.
const parent = process.ppid;
const watchParent = setInterval(() => {
  if (process.ppid !== parent) stop.abort();
}, SECOND / 2);
watchParent.unref();

// A terminal that was closed must not keep us from stopping in order.
process.stdout.on("error", () => {});
process.stderr.on("error", () => {});

try {
  const settings = readStartSettings();
  // Started without npm, a parent may well go first: a shell with `nohup`, for one.
  if (!settings.inherited.npm_lifecycle_event) clearInterval(watchParent);
  await start({
    settings,
    root,
    entries: { api: join(root, "src/main.ts"), worker: join(root, "workers/main.ts") },
    say: (line) => void process.stdout.write(`${line}\n`),
    stop: stop.signal,
    hurry: hurry.signal,
  });
} catch (error) {
  unexpected ??= error;
}
if (unexpected !== undefined) {
  const known = [StartFailure, ConfigError, MigrationError].some((kind) => unexpected instanceof kind);
  process.stderr.write(
    `${known || !(unexpected instanceof Error) ? String((unexpected as Error).message ?? unexpected) : unexpected.stack}\n`,
  );
}
process.exit(unexpected === undefined ? 0 : 1);
