import { describe, expect, it } from "vitest";
import { chooseReading, createServerClock, createSleepDetector, readingOf } from "../../web/clock.js";

/** A server, a network and a local monotonic clock, in milliseconds that pass only when told to. */
function world() {
  let passedMs = 0;
  const way = { thereMs: 0, backMs: 0, up: true };
  const server = { startMs: Date.parse("2030-01-01T00:00:00Z") };
  const clock = createServerClock(
    async () => {
      passedMs += way.thereMs;
      const serverMs = server.startMs + passedMs;
      passedMs += way.backMs;
      return way.up ? serverMs : null;
    },
    () => passedMs,
  );
  return { clock, way, server, now: () => server.startMs + passedMs, pass: (ms: number) => (passedMs += ms) };
}

describe("the server's time", () => {
  it("isn't guessed before the server was asked", async () => {
    const { clock, way } = world();
    way.up = false;
    expect(await clock.measure()).toBe(false);
    expect(clock.now()).toBeNull();
  });

  it("is exact over a way that takes as long there as back", async () => {
    const { clock, way, now, pass } = world();
    Object.assign(way, { thereMs: 400, backMs: 400 });
    expect(await clock.measure()).toBe(true);
    pass(12_345);
    expect(clock.now()).toBe(now());
  });

  it("is never further off than half the way there and back", async () => {
    const { clock, way, now } = world();
    Object.assign(way, { thereMs: 10, backMs: 590 });
    await clock.measure();
    expect(Math.abs((clock.now() ?? 0) - now())).toBeLessThanOrEqual(300);
  });

  it("is that of the shortest way of several", async () => {
    const { clock, way, now } = world();
    Object.assign(way, { thereMs: 0, backMs: 600 });
    await clock.measure();
    Object.assign(way, { thereMs: 10, backMs: 10 });
    await clock.measure();
    Object.assign(way, { thereMs: 0, backMs: 600 });
    await clock.measure();
    expect(clock.now()).toBe(now());
  });

  it("follows a server whose clock was set, and a device that had slept", async () => {
    const { clock, way, server, now } = world();
    Object.assign(way, { thereMs: 5, backMs: 5 });
    await clock.measure();
    server.startMs += 3_600_000;
    Object.assign(way, { thereMs: 200, backMs: 200 });
    await clock.measure();
    expect(clock.now()).toBe(now());
  });

  it("goes on from the last reading while the server doesn't answer", async () => {
    const { clock, way, now, pass } = world();
    await clock.measure();
    way.up = false;
    expect(await clock.measure()).toBe(false);
    pass(60_000);
    expect(clock.now()).toBe(now());
  });
});

describe("readings", () => {
  it("lie in the middle between sending and receiving", () => {
    expect(readingOf(1_000, 1_100, 500_000)).toEqual({ offsetMs: 498_950, errorMs: 50 });
  });

  it("of two that can both be true the more exact one is kept, of two that can't the newer", () => {
    const exact = { offsetMs: 1_000, errorMs: 5 };
    expect(chooseReading(exact, { offsetMs: 1_100, errorMs: 100 })).toBe(exact);
    const other = { offsetMs: 9_000, errorMs: 100 };
    expect(chooseReading(exact, other)).toBe(other);
  });
});

describe("sleep", () => {
  it("is noticed by a monotonic clock that stood still, and by a wall clock that was set", () => {
    const slept = createSleepDetector();
    expect(slept(0, 1_000_000)).toBe(false);
    expect(slept(1_000, 1_001_000)).toBe(false);
    expect(slept(2_000, 1_602_000)).toBe(true);
    expect(slept(3_000, 1_603_000)).toBe(false);
    expect(slept(4_000, 4_000)).toBe(true);
  });
});
