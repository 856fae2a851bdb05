/** docs/runbook.md as what it says to type. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { runLine } from "../../src/cli/operate/run-line.js";
import { loadConfig } from "../../src/config.js";
import { atEndOfFile } from "../support/test-file.js";

/** A fenced block of commands. */
export interface Block {
  /** the heading above it: an alarm's name, mostly */
  readonly section: string;
  /** its number within the section, from 1 */
  readonly at: number;
  /** needs Docker and its services: the block is marked `sh docker` */
  readonly docker: boolean;
  /** one a line, or over several where the line goes on with | or \ */
  readonly commands: readonly string[];
}

export function blocksOf(markdown: string): Block[] {
  return markdown
    .split(/^## /m)
    .slice(1)
    .flatMap((part) => {
      const section = part.slice(0, part.indexOf("\n"));
      return [...part.matchAll(/^```(.*)\n([\s\S]*?)^```$/gm)].map(([, info = "", text = ""], index) => {
        if (!["sh", "sh docker"].includes(info)) throw new Error(`${section} has a block that is "${info}"`);
        return { section, at: index + 1, docker: info === "sh docker", commands: commandsOf(text) };
      });
    });
}

function commandsOf(text: string): string[] {
  return text
    .replace(/([|\\])\n */g, (_, end: string) => (end === "|" ? "| " : " "))
    .split("\n")
    .filter((line) => line.trim() !== "");
}

/** The exit status that a command has when all is as the runbook says. */
export function statusOf(command: string): number {
  return /#.*\bexits with 1\b/.test(command) ? 1 : 0;
}

/**
 * A shell in which `npm run --silent sluice -- …` is run in here, by the same code without the seconds that a process takes to
 * start, and any other script as package.json has it.
 */
export interface Shell {
  /** begins every script */
  readonly prelude: string;
  /** what the commands said on standard error, the newest last */
  readonly errors: readonly string[];
}

/** @param env of the commands, instead of the environment */
export async function openShell(root: string, env: Record<string, string>): Promise<Shell> {
  const errors: string[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const args = Buffer.concat(chunks).toString("utf8").split("\0").slice(0, -1);
    const said: string[] = [];
    const status = await runLine(args, {
      config: () => loadConfig(env),
      out: (text) => void said.push(text),
      err: (text) => void errors.push(text),
    });
    response.end(`${status}\n${said.join("")}`);
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  atEndOfFile(() => server.close());
  const { port } = server.address() as AddressInfo;
  return { errors, prelude: preludeOf(root, port) };
}

function preludeOf(root: string, port: number): string {
  return `
set -u -o pipefail
npm() {
  [ "$1 $2 $4" = "run --silent --" ] || return 64
  local script=$3 reply
  shift 4
  if [ "$script" != sluice ]; then
    (cd '${root}' && node --import tsx "src/cli/$script.ts" "$@")
    return
  fi
  reply=$(printf '%s\\0' "$@" | curl -sf --data-binary @- http://127.0.0.1:${port}/) || return 65
  printf '%s' "\${reply#*$'\\n'}"
  return "\${reply%%$'\\n'*}"
}
`;
}
