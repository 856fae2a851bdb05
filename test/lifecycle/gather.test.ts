import { describe, expect, it } from "vitest";
import { type GatherOptions, gather } from "../../src/lifecycle/gather.js";

/** Groups as they were run, each held until it is told how to end. */
function heldGather(options: Partial<GatherOptions<number, string>> = {}) {
  const groups: { items: readonly number[]; end: (error?: Error) => void }[] = [];
  const made = gather<number, string>({
    maxItems: 3,
    maxWaitMs: 5,
    maxRuns: 1,
    run: (items, answer) =>
      new Promise((resolve, reject) => {
        const end = (error?: Error) => {
          if (error) return reject(error);
          answer(items.map((item) => `<${item}>`));
          resolve();
        };
        groups.push({ items, end });
      }),
    ...options,
  });
  return { ...made, groups };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

describe("gather", () => {
  it("runs a full group at once, a smaller one after the wait, each item answered for in its place", async () => {
    const { add, groups } = heldGather({ maxRuns: 2 });
    const answers = [1, 2, 3, 4].map((item) => add(item));
    await turn();
    expect(groups.map(({ items }) => items)).toEqual([[1, 2, 3]]);
    groups[0]?.end();
    expect(await Promise.all(answers.slice(0, 3))).toEqual(["<1>", "<2>", "<3>"]);
    await expect.poll(() => groups.length).toBe(2);
    groups[1]?.end();
    expect(await answers[3]).toBe("<4>");
  });

  it("runs no more groups at once than it may; what comes meanwhile makes the next ones larger", async () => {
    const { add, groups, waiting, drained } = heldGather();
    const answers = Array.from({ length: 8 }, (_, at) => add(at));
    await turn();
    expect(groups).toHaveLength(1);
    expect(waiting()).toBe(8);
    for (const [at, size] of [3, 3, 2].entries()) {
      await expect.poll(() => groups.length).toBe(at + 1);
      expect(groups[at]?.items).toHaveLength(size);
      groups[at]?.end();
      await turn();
    }
    expect(await Promise.all(answers)).toEqual(Array.from({ length: 8 }, (_, at) => `<${at}>`));
    await drained();
    expect(waiting()).toBe(0);
  });

  it("runs as many as are admitted, one asking after the other; those left over ask again", async () => {
    const asked: { ready: number; admit: (count: number) => void }[] = [];
    const admit = (ready: number) => new Promise<number>((resolve) => asked.push({ ready, admit: resolve }));
    const { add, groups, drained } = heldGather({ maxItems: 4, maxRuns: 2, admit });
    const answers = [1, 2, 3, 4, 5, 6].map((item) => add(item));
    await turn();
    expect([asked.map(({ ready }) => ready), groups.length]).toEqual([[4], 0]);
    asked[0]?.admit(1);
    await expect.poll(() => asked.length).toBe(2);
    expect(groups.map(({ items }) => items)).toEqual([[1]]);
    asked[1]?.admit(4);
    await expect.poll(() => groups.length).toBe(2);
    expect(groups[1]?.items).toEqual([2, 3, 4, 5]);
    // Two are under way: nobody asks for a third.
    await turn();
    expect(asked).toHaveLength(2);
    groups[1]?.end();
    await expect.poll(() => asked.length).toBe(3);
    expect(asked[2]?.ready).toBe(1);
    asked[2]?.admit(1);
    await expect.poll(() => groups.length).toBe(3);
    groups[0]?.end();
    groups[2]?.end();
    expect(await Promise.all(answers)).toEqual([1, 2, 3, 4, 5, 6].map((item) => `<${item}>`));
    await drained();
  });

  it("fails a group that fails, and no other", async () => {
    const { add, groups, waiting } = heldGather({ maxItems: 1 });
    const [bad, good] = [add(1), add(2)];
    await turn();
    groups[0]?.end(new Error("no luck"));
    await expect(bad).rejects.toThrow("no luck");
    await expect.poll(() => groups.length).toBe(2);
    groups[1]?.end();
    expect(await good).toBe("<2>");
    expect(waiting()).toBe(0);
  });

  it("fails a group whose run throws at once, or ends without an answer", async () => {
    const throwing = gather<number, string>({
      maxItems: 1,
      maxWaitMs: 1,
      maxRuns: 1,
      run: () => {
        throw new Error("at once");
      },
    });
    await expect(throwing.add(1)).rejects.toThrow("at once");
    const silent = gather<number, string>({ maxItems: 1, maxWaitMs: 1, maxRuns: 1, run: async () => {} });
    await expect(silent.add(1)).rejects.toThrow("without an answer");
    await Promise.all([throwing.drained(), silent.drained()]);
  });

  it("lets callers go at the answer; what fails behind it is not theirs, and is waited for when it drains", async () => {
    let finish: (error: Error) => void = () => {};
    const { add, drained, waiting } = gather<number, string>({
      maxItems: 1,
      maxWaitMs: 1,
      maxRuns: 1,
      run: (_, answer) => {
        answer(["early"]);
        return new Promise((_resolve, reject) => {
          finish = reject;
        });
      },
    });
    expect(await add(1)).toBe("early");
    expect(waiting()).toBe(0);
    let isDrained = false;
    const draining = drained().then(() => {
      isDrained = true;
    });
    await turn();
    expect(isDrained).toBe(false);
    finish(new Error("behind the answer"));
    await draining;
  });
});
