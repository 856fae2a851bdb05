import type { Database, Tx } from "../../src/db/client.js";
import type { RedisLink } from "../../src/redis/link.js";
import type { Resources } from "../../src/resources.js";

/** An operation that stands still between two of its steps, in the real thing: what it calls waits before it is sent. */
export interface Held {
  readonly resources: Resources;
  /** Resolves when it stands there. */
  readonly reached: Promise<void>;
  letGo(): void;
}

/**
 * Where a load stands: `begin` between the new epoch and load.lua, `chunks` after load.lua has begun, before any request
 * is read, `finish` before buyers are let in (a sale of up to a hundred requests).
 */
export type LoadStep = "begin" | "chunks" | "finish";

/** The resources of a process whose next load stops at this step. */
export function holdLoad(resources: Resources, step: LoadStep): Held {
  const gate = makeGate();
  if (step === "chunks") {
    const reads = new Proxy(resources.reads, {
      get: (target, property) =>
        property === "$queryRaw"
          ? async (...args: Parameters<Database["$queryRaw"]>) => {
              await gate.pass();
              return target.$queryRaw(...args);
            }
          : Reflect.get(target, property),
    });
    return { resources: { ...resources, reads }, reached: gate.reached, letGo: gate.letGo };
  }
  // Of a load's calls the second begins, after one that looks; the last one finishes, after one chunk.
  const call = step === "begin" ? 2 : 4;
  let calls = 0;
  const run: RedisLink["run"] = async (command) => {
    calls += 1;
    if (calls === call) await gate.pass();
    return resources.redis.run(command);
  };
  return {
    resources: { ...resources, redis: { ...resources.redis, run } },
    reached: gate.reached,
    letGo: gate.letGo,
  };
}

/** The resources of a process whose next transaction stops before its first statement that has these words. */
export function holdStatement(resources: Resources, words: string): Held {
  const gate = makeGate();
  let held = false;
  const inTransaction = (tx: Tx): Tx =>
    new Proxy(tx, {
      get: (target, property) =>
        property === "$queryRaw" || property === "$executeRaw"
          ? async (text: TemplateStringsArray, ...values: unknown[]) => {
              if (!held && text.join("?").includes(words)) {
                held = true;
                await gate.pass();
              }
              return target[property](text, ...values);
            }
          : Reflect.get(target, property),
    });
  const holding = (database: Database): Database =>
    new Proxy(database, {
      get: (target, property) =>
        property === "$transaction"
          ? (body: (tx: Tx) => Promise<unknown>) => target.$transaction((tx) => body(inTransaction(tx)))
          : Reflect.get(target, property),
    });
  const pools = { db: holding(resources.db), orders: holding(resources.orders) };
  return { resources: { ...resources, ...pools }, reached: gate.reached, letGo: gate.letGo };
}

function makeGate() {
  const reached = makeSignal();
  const open = makeSignal();
  return {
    reached: reached.given,
    letGo: open.give,
    pass: async () => {
      reached.give();
      await open.given;
    },
  };
}

/** Something that happens once, and those who wait for it. */
export function makeSignal(): { readonly given: Promise<void>; give(): void } {
  let give = () => {};
  const given = new Promise<void>((resolve) => {
    give = resolve;
  });
  return { given, give: () => give() };
}
