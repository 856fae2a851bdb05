import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { loadConfig } from "../../src/config.js";
import { armFailpoints, drilling, FAILPOINTS, failpoint, parseFailpoints } from "../../src/lifecycle/failpoints.js";

afterEach(() => armFailpoints(new Map()));

const arm = (text: string) => armFailpoints(parseFailpoints(text));
const ONCE = { at: 1, again: false };

describe("failpoints", () => {
  it("are read by name and action, with spaces and empty entries forgiven", () => {
    expect(parseFailpoints("")).toEqual(new Map());
    expect(
      parseFailpoints(" load.after_epoch=kill, ,write.after_commit=freeze@3,write.before_ack=delay:50@2*,"),
    ).toEqual(
      new Map([
        ["load.after_epoch", { action: "kill", ...ONCE }],
        ["write.after_commit", { action: "freeze", at: 3, again: false }],
        ["write.before_ack", { action: 50, at: 2, again: true }],
      ]),
    );
    for (const name of FAILPOINTS) {
      expect(parseFailpoints(`${name}=error*`)).toEqual(new Map([[name, { action: "error", at: 1, again: true }]]));
    }
  });

  it.each([
    ["no.such_point=kill", "there is no failpoint no.such_point"],
    ["load.after_epoch", "not nothing"],
    ["load.after_epoch=", "not nothing"],
    ["load.after_epoch=explode", "not explode"],
    ["load.after_epoch=toString", "not toString"],
    ["load.after_epoch=kill=freeze", "not kill=freeze"],
    ["load.after_epoch=delay", "not delay"],
    ["load.after_epoch=delay:-1", "not delay:-1"],
    ["load.after_epoch=kill@0", "not kill@0"],
    ["load.after_epoch=kill*@2", "not kill*@2"],
    ["load.after_epoch=kill, load.after_epoch=freeze", "the failpoint load.after_epoch is armed twice"],
    ["=kill", "there is no failpoint"],
  ])("%s is refused: %s", (text, problem) => {
    expect(() => parseFailpoints(text)).toThrow(problem);
  });

  it("are armed by the environment, and in production refused", () => {
    const env = { DATABASE_URL: "postgresql://x", REDIS_URL: "redis://x", SLUICE_FAILPOINTS: "bury.after_commit=kill" };
    const load = (NODE_ENV: string) =>
      loadConfig({ ...env, NODE_ENV, SLUICE_DATA_DIR: "/nonexistent" }, { servesCallers: false });
    expect([...load("test").SLUICE_FAILPOINTS.keys()]).toEqual(["bury.after_commit"]);
    expect(() => load("production")).toThrow("SLUICE_FAILPOINTS is for drills");
  });

  it("do nothing where none is armed, or another one", async () => {
    expect(drilling).toBe(false);
    for (const name of FAILPOINTS) await failpoint(name);
    arm("load.after_chunk=kill");
    expect(drilling).toBe(true);
    await failpoint("load.after_epoch");
    armFailpoints(new Map());
    expect(drilling).toBe(false);
    await failpoint("load.after_chunk");
  });

  it("go off once, at the passage that is named", async () => {
    arm("write.after_stock=error@2");
    const outcomes = await Promise.allSettled([1, 2, 3].map(() => failpoint("write.after_stock")));
    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(outcomes[1]).toMatchObject({
      reason: { name: "write.after_stock", message: "failpoint write.after_stock" },
    });
  });

  it("go off at every passage from that one on, with a star", async () => {
    arm("write.after_stock=error@2*");
    const outcomes = await Promise.allSettled([1, 2, 3].map(() => failpoint("write.after_stock")));
    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "rejected"]);
  });

  it("delay what passes them, and nothing else", async () => {
    arm("journal.after_commit=delay:60");
    const started = performance.now();
    const delayed = failpoint("journal.after_commit").then(() => "delayed");
    expect(await Promise.race([delayed, failpoint("journal.before_commit").then(() => "not delayed")])).toBe(
      "not delayed",
    );
    await delayed;
    expect(performance.now() - started).toBeGreaterThan(55);
  });

  it("are passed by the code, each of them, and never without the question that makes them cost nothing", () => {
    const sources = ["src", "workers"].flatMap(filesUnder).filter((path) => !path.endsWith("/failpoints.ts"));
    const calls = sources.flatMap((path) =>
      [...readFileSync(path, "utf8").matchAll(/^(.*)\bfailpoint\((.*?)\)/gm)].map(([, before = "", name = ""]) => {
        expect(before, `${name} in ${path}`).toMatch(/^ *if \(drilling( && [^()]+)?\) await $/);
        return name;
      }),
    );
    expect(calls.sort()).toEqual(FAILPOINTS.map((name) => `"${name}"`).sort());
  });
});

function filesUnder(folder: string): string[] {
  const root = fileURLToPath(new URL(`../../${folder}`, import.meta.url));
  return readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".ts"))
    .map((path) => join(root, path));
}
