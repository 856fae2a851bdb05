/** Builds what the Dockerfile builds, without an engine: a folder for each stage, and the same commands in it. */
import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  symlinkSync,
} from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join, relative } from "node:path";
import { atEndOfFile } from "../support/test-file.js";
import { finished, root } from "./run.js";

/** The last stage. */
export interface Image {
  /** The folder that a container would begin in. */
  readonly directory: string;
  readonly env: Readonly<Record<string, string>>;
  readonly user: string;
  readonly command: readonly string[];
  readonly healthcheck: readonly string[];
  readonly stopSignal: string;
  readonly ports: readonly number[];
}

interface Stage {
  /** What stands for the root of its file system. */
  readonly root: string;
  directory: string;
  readonly env: Record<string, string>;
  user: string;
  command: string[];
  healthcheck: string[];
  stopSignal: string;
  ports: number[];
}

/** Takes about as long as an engine would need without the downloads. Throws where a command fails. */
export async function buildImage(): Promise<Image> {
  const folder = mkdtempSync(join(tmpdir(), "sluice-image-"));
  // Also another user enters here, as one does in a container.
  chmodSync(folder, 0o755);
  atEndOfFile(async () => {
    makeWritable(folder, true);
    await rm(folder, { recursive: true, force: true });
  });
  const stages = new Map<string, Stage>();
  let stage: Stage | undefined;
  for (const [instruction, text] of instructions()) {
    if (instruction === "FROM") {
      const [, name = ""] = /^node:22-bookworm-slim AS (\w+)$/.exec(text) ?? [];
      if (!name) throw new Error(`what is built from ${text} can't be built here`);
      stage = newStage(join(folder, name));
      stages.set(name, stage);
    } else if (stage) await follow(stage, instruction, text, stages);
  }
  if (!stage) throw new Error("the Dockerfile has no stage");
  // Thousands of files that nobody needs any more: not left for the end of the tests, which has its time limit.
  for (const { root } of stages.values()) if (root !== stage.root) await rm(root, { recursive: true });
  makeWritable(stage.root, false);
  return stage;
}

function instructions(): [name: string, text: string][] {
  return readFileSync(join(root, "Dockerfile"), "utf8")
    .split("\n")
    .filter((line) => line && !line.startsWith("#"))
    .map((line) => {
      const [, name = "", text = ""] = /^([A-Z]+) (.*[^\\])$/.exec(line) ?? [];
      if (!name) throw new Error(`not understood in the Dockerfile: ${line}`);
      return [name, text];
    });
}

function newStage(path: string): Stage {
  mkdirSync(path, { mode: 0o755 });
  return {
    root: path,
    directory: path,
    env: {},
    user: "root",
    command: [],
    healthcheck: [],
    stopSignal: "",
    ports: [],
  };
}

async function follow(stage: Stage, instruction: string, text: string, stages: ReadonlyMap<string, Stage>) {
  switch (instruction) {
    case "WORKDIR":
      stage.directory = join(stage.root, text);
      mkdirSync(stage.directory, { recursive: true });
      return;
    case "ENV":
      for (const pair of text.split(" "))
        stage.env[pair.split("=", 1)[0] as string] = pair.slice(pair.indexOf("=") + 1);
      return;
    case "COPY":
      return copy(stage, text.split(" "), stages);
    case "RUN":
      return runCommand(stage, text);
    case "USER":
      stage.user = text;
      return;
    case "EXPOSE":
      stage.ports = text.split(" ").map(Number);
      return;
    case "STOPSIGNAL":
      stage.stopSignal = text;
      return;
    case "CMD":
      stage.command = JSON.parse(text);
      return;
    case "HEALTHCHECK":
      stage.healthcheck = JSON.parse(text.slice(text.indexOf("CMD ") + 4));
      return;
    default:
      throw new Error(`this doesn't know how to ${instruction}`);
  }
}

function copy(stage: Stage, words: string[], stages: ReadonlyMap<string, Stage>): void {
  const from = words[0]?.startsWith("--from=") ? words.shift()?.slice("--from=".length) : undefined;
  const target = words.pop() as string;
  for (const source of words) {
    const path = from ? join(stages.get(from)?.root ?? "/no/such/stage", source) : join(root, source);
    const intoFolder = target.endsWith("/") && lstatSync(path).isFile();
    cpSync(path, join(stage.directory, target, intoFolder ? basename(source) : ""), {
      recursive: true,
      verbatimSymlinks: true,
      filter: (file) => from !== undefined || isInContext(relative(root, file)),
    });
  }
}

/** Whether .dockerignore lets this file of the checkout through: the last line that fits decides. */
function isInContext(path: string): boolean {
  const fits = (pattern: string) => pattern === "*" || path === pattern || path.startsWith(`${pattern}/`);
  return (
    readFileSync(join(root, ".dockerignore"), "utf8")
      .split("\n")
      .filter((line) => line && !line.startsWith("#"))
      .reduce((inside, line) => (fits(line.replace(/^!/, "")) ? line.startsWith("!") : inside), true) || path === ""
  );
}

async function runCommand(stage: Stage, command: string): Promise<void> {
  if (command === "npm ci --ignore-scripts --include=dev") return linkModules(stage.directory);
  const env = { ...stage.env, npm_config_prefer_offline: "true", npm_config_audit: "false", npm_config_fund: "false" };
  const { code, stdout, stderr } = await finished("sh", ["-c", command], { cwd: stage.directory, env });
  if (code !== 0) throw new Error(`${command} ended with ${code}:\n${stdout}\n${stderr}`);
}

/**
 * What the tests run with was installed from this very lock: no second download. Package by package, so that an npm that
 * clears this folder can't reach through into the checkout.
 */
function linkModules(directory: string): void {
  const installed = join(root, "node_modules");
  mkdirSync(join(directory, "node_modules"));
  for (const name of readdirSync(installed)) {
    const [from, to] = [join(installed, name), join(directory, "node_modules", name)];
    if (lstatSync(from).isFile()) cpSync(from, to);
    else symlinkSync(from, to);
  }
}

/** Files in an image belong to root. Where we aren't root, to nobody who could write to them. */
function makeWritable(path: string, writable: boolean): void {
  if (process.getuid?.() === 0 || !existsSync(path)) return;
  const { mode } = lstatSync(path);
  if (lstatSync(path).isSymbolicLink()) return;
  chmodSync(path, writable ? mode | 0o200 : mode & ~0o222);
  if (lstatSync(path).isDirectory()) for (const name of readdirSync(path)) makeWritable(join(path, name), writable);
}
