import { describe, expect, it } from "vitest";
import { createLanes } from "../../src/lifecycle/lanes.js";
import { waitFor } from "../support/wait.js";

const TOO_LATE = new Error("too late");
const lanesOf = (perKey: number, waitMs = 60_000) => createLanes({ perKey, waitMs, late: () => TOO_LATE });

/** Work that goes on until it is let go, and tells whether it has begun. */
function held() {
  let finish = () => {};
  const until = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const work = {
    begun: false,
    finish,
    run: () => {
      work.begun = true;
      return until;
    },
  };
  return work;
}

describe("lanes", () => {
  it("let a few through of one key, in the order in which they came, and the others' keys are not in their way", async () => {
    const lanes = lanesOf(2);
    const [one, two, three, four, elsewhere] = [held(), held(), held(), held(), held()];
    const all = [one, two, three, four].map((work) => lanes.run("a", work.run));
    const other = lanes.run("b", elsewhere.run);
    await Promise.resolve();
    expect([one, two, three, four, elsewhere].map(({ begun }) => begun)).toEqual([true, true, false, false, true]);
    two.finish();
    await all[1];
    await waitFor(() => three.begun, { what: "the third" });
    expect(four.begun).toBe(false);
    for (const work of [one, three, four, elsewhere]) work.finish();
    await Promise.all([...all, other]);
  });

  it("are free again after work that fails", async () => {
    const lanes = lanesOf(1);
    await expect(lanes.run("a", () => Promise.reject(new Error("no luck")))).rejects.toThrow("no luck");
    expect(await lanes.run("a", async () => "done")).toBe("done");
  });

  it("turn away who waits for too long, without having begun, and lose no lane by it", async () => {
    const lanes = lanesOf(1, 20);
    const [first, late] = [held(), held()];
    const running = lanes.run("a", first.run);
    await expect(lanes.run("a", late.run)).rejects.toBe(TOO_LATE);
    expect(late.begun).toBe(false);
    first.finish();
    await running;
    expect(await lanes.run("a", async () => "done")).toBe("done");
  });
});
