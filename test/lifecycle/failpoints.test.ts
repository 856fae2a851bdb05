import { describe, expect, it } from "vitest";
import { armFailpoints, FAILPOINTS, failpoint, parseFailpoints } from "../../src/lifecycle/failpoints.js";

describe("failpoints", () => {
  it("are read by name and action, with spaces and empty entries forgiven", () => {
    expect(parseFailpoints("")).toEqual(new Map());
    expect(parseFailpoints(" load.after_epoch=kill, ,write.after_commit=freeze,")).toEqual(
      new Map([
        ["load.after_epoch", "kill"],
        ["write.after_commit", "freeze"],
      ]),
    );
    for (const name of FAILPOINTS) expect(parseFailpoints(`${name}=kill`).size).toBe(1);
  });

  it.each([
    ["no.such_point=kill", "there is no failpoint no.such_point"],
    ["load.after_epoch", "a failpoint can kill or freeze, not nothing"],
    ["load.after_epoch=", "a failpoint can kill or freeze, not nothing"],
    ["load.after_epoch=explode", "a failpoint can kill or freeze, not explode"],
    ["load.after_epoch=toString", "a failpoint can kill or freeze, not toString"],
    ["load.after_epoch=kill=freeze", "a failpoint can kill or freeze, not kill=freeze"],
    ["=kill", "there is no failpoint"],
  ])("%s is refused: %s", (text, problem) => {
    expect(() => parseFailpoints(text)).toThrow(problem);
  });

  it("do nothing where none is armed, or another one", () => {
    for (const name of FAILPOINTS) failpoint(name);
    armFailpoints(new Map());
    for (const name of FAILPOINTS) failpoint(name);
    armFailpoints(new Map([["load.after_chunk", "kill"]]));
    failpoint("load.after_epoch");
  });
});
