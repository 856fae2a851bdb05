import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it, vi } from "vitest";
import { orWhenLate } from "../../src/lifecycle/pause.js";

const never = new Promise<never>(() => {});

/** Long enough for whatever was left behind to run. */
async function aFewTurns() {
  for (let count = 0; count < 10; count += 1) await turn();
}

describe("what is waited for with a deadline", () => {
  it("is its own result where it is in time, and what was meant for a late one is never done", async () => {
    const late = vi.fn(() => "late");
    expect(await orWhenLate(Promise.resolve("in time"), 1, late)).toBe("in time");
    await expect(orWhenLate(Promise.reject(new Error("failed")), 1, late)).rejects.toThrow("failed");
    await aFewTurns();
    expect(late).not.toHaveBeenCalled();
  });

  it("is what is said for a late one, once; what it throws is thrown", async () => {
    const late = vi.fn(() => "late");
    expect(await orWhenLate(never, 1, late)).toBe("late");
    expect(late).toHaveBeenCalledTimes(1);
    const gaveUp = orWhenLate(never, 1, () => {
      throw new Error("gave up");
    });
    await expect(gaveUp).rejects.toThrow("gave up");
  });

  it("is in time also where a busy process comes to its timer first", async () => {
    const late = vi.fn(() => "late");
    const arrived = new Promise<string>((resolve) => setImmediate(() => resolve("in time")));
    const waiting = orWhenLate(arrived, 1, late);
    const busyUntil = performance.now() + 20;
    while (performance.now() < busyUntil);
    expect(await waiting).toBe("in time");
    expect(late).not.toHaveBeenCalled();
  });

  it("fails silently when it fails after nobody waits any more", async () => {
    let fail = (_: Error) => {};
    const work = new Promise<never>((_, reject) => {
      fail = reject;
    });
    expect(await orWhenLate(work, 1, () => "late")).toBe("late");
    fail(new Error("too late to matter"));
    await aFewTurns();
  });
});
