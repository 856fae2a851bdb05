import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createCeiling } from "../../src/lifecycle/ceiling.js";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
});

afterEach(() => {
  vi.useRealTimers();
});

/** Takes as much as it gets, without end; `grants` are what it got, `taken` all of it. */
function greedy(take: (wanted: number) => Promise<number>, wanted: number) {
  const taker = { grants: [] as number[], taken: () => taker.grants.reduce((sum, grant) => sum + grant, 0) };
  const takeOn = async () => {
    for (;;) taker.grants.push(await take(wanted));
  };
  void takeOn();
  return taker;
}

describe("a ceiling", () => {
  it.each([
    [1_000, 256, 50],
    [1_000, 3, 3],
    [90, 256, 4],
    [7, 256, 1],
    [0.5, 256, 1],
  ])("of %s a second grants so many and no more, to who wants %s at a time %s", async (perSecond, wanted, atOnce) => {
    const taker = greedy(createCeiling(perSecond).take, wanted);
    await vi.advanceTimersByTimeAsync(20_000);
    expect(Math.max(...taker.grants)).toBe(atOnce);
    const ceiling = perSecond * 20;
    expect(taker.taken()).toBeLessThanOrEqual(ceiling + perSecond / 20 + 1);
    // Timers are no finer than a millisecond.
    expect(taker.taken()).toBeGreaterThanOrEqual(Math.floor(ceiling * 0.94));
  });

  it("saves nothing up while nobody wants anything", async () => {
    const { take } = createCeiling(1_000);
    await vi.advanceTimersByTimeAsync(60_000);
    const taker = greedy(take, 256);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(taker.taken()).toBeLessThanOrEqual(1_050);
  });

  it("shares what there is evenly among those who want much, and gives who wants little all of it", async () => {
    const { take } = createCeiling(1_000);
    const [one, two] = [greedy(take, 256), greedy(take, 256)];
    let asked = 0;
    const modest = setInterval(() => {
      asked += 1;
      void take(1).then(() => {
        asked -= 1;
      });
    }, 250);
    await vi.advanceTimersByTimeAsync(10_000);
    clearInterval(modest);
    expect(Math.abs(one.taken() - two.taken())).toBeLessThanOrEqual(100);
    expect(one.taken()).toBeGreaterThan(4_500);
    expect(asked).toBeLessThanOrEqual(1);
  });
});
