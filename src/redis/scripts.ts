import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Redis } from "ioredis";

/**
 * What each script under lua/ takes and answers, by the names in its header. A test holds the two against each other,
 * because a header that nothing reads goes stale.
 */
export interface ScriptDescriptor {
  readonly file: string;
  readonly keys: readonly string[];
  /** whether more keys of the last kind follow */
  readonly manyKeys: boolean;
  /** what every call takes */
  readonly argv: readonly string[];
  /** what more a step of it takes, by the step's name */
  readonly steps?: Readonly<Record<string, ScriptStep>>;
  /** what follows as often as there are entries */
  readonly entry?: readonly string[];
  readonly replies: readonly string[];
}

interface ScriptStep {
  readonly argv: readonly string[];
  readonly entry?: readonly string[];
}

export const SCRIPTS = {
  reserve: {
    file: "reserve.lua",
    keys: ["sale", "stock", "holders", "pending", "request"],
    manyKeys: false,
    argv: ["runId", "requestId", "buyerId", "itemId", "quantity", "notAfter", "accept", "stage", "rank"],
    replies: [
      "ACCEPTED",
      "KNOWN",
      "CONFLICT",
      "NOT_LOADED",
      "DAMAGED",
      "UNKNOWN_ITEM",
      "NOT_STARTED",
      "PAUSED",
      "ENDED",
      "HELD",
      "LIMIT_EXCEEDED",
      "SOLD_OUT",
      "INSUFFICIENT",
      "BUSY",
      "REFUSED",
      "TOO_LATE",
    ],
  },
  advance: {
    file: "advance.lua",
    keys: ["sale", "stock", "holders", "pending", "request"],
    manyKeys: true,
    argv: ["runId", "channel"],
    entry: ["requestId", "stage", "rank", "reason", "units", "epoch", "decided", "endsHold"],
    replies: ["OK", "NOT_LOADED", "DAMAGED", "APPLIED", "STALE", "ABSORBED", "LATER", "UNKNOWN"],
  },
  load: {
    file: "load.lua",
    keys: ["sale", "stock", "holders", "pending", "request"],
    manyKeys: true,
    argv: ["step", "runId", "epoch"],
    steps: {
      begin: {
        argv: ["state", "stateVersion", "opensAt", "closesAt", "forgetAt", "maxPerBuyer", "backlogLimit", "seq"],
        entry: ["itemId", "remaining"],
      },
      chunk: {
        argv: [],
        entry: ["requestId", "buyer", "item", "quantity", "stage", "rank", "reason", "at", "seq", "stands"],
      },
      finish: { argv: ["channel"] },
    },
    replies: ["OK", "SUPERSEDED", "DAMAGED"],
  },
  park: {
    file: "park.lua",
    keys: ["sale", "pending", "request"],
    manyKeys: true,
    argv: ["runId", "inLine", "queued"],
    entry: ["requestId"],
    replies: ["OK", "NOT_LOADED", "DAMAGED"],
  },
  set_state: {
    file: "set_state.lua",
    keys: ["sale"],
    manyKeys: false,
    argv: ["state", "stateVersion", "channel", "forgetAt"],
    replies: ["APPLIED", "STALE", "DAMAGED"],
  },
} as const satisfies Record<string, ScriptDescriptor>;

export type ScriptName = keyof typeof SCRIPTS;
export type ScriptReply<Name extends ScriptName> = (typeof SCRIPTS)[Name]["replies"][number];

/** The text of a script, from lua/ beside src/ (or beside the built sources). */
export function scriptSource(name: ScriptName): string {
  return readFileSync(join(luaDirectory(), SCRIPTS[name].file), "utf8");
}

/** Teaches a connection our scripts. They are sent by hash, and whole once where the server has forgotten them. */
export function defineScripts(client: Redis): void {
  for (const name of Object.keys(SCRIPTS) as ScriptName[]) {
    client.defineCommand(commandName(name), { lua: scriptSource(name) });
  }
}

/** Sends a script. Its reply is as Redis gave it: strings and arrays. */
export function callScript(
  client: Redis,
  name: ScriptName,
  keys: readonly string[],
  args: readonly (string | number)[],
): Promise<unknown> {
  const command = (client as unknown as Record<string, (...args: unknown[]) => Promise<unknown>>)[commandName(name)];
  if (!command) throw new Error(`The connection was not taught ${SCRIPTS[name].file}.`);
  return command.call(client, keys.length, ...keys, ...args);
}

function commandName(name: ScriptName): string {
  return `sluice:${name}`;
}

function luaDirectory(): string {
  let directory = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(directory, "lua", SCRIPTS.reserve.file))) {
    const parent = dirname(directory);
    if (parent === directory) throw new Error("The lua/ directory is missing.");
    directory = parent;
  }
  return join(directory, "lua");
}
