import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { SECOND } from "../../src/domain/time.js";
import { RedisClock } from "../../src/redis/redis-clock.js";

// The two clocks of this machine stand still, and go on when a test says so.
beforeEach(() => {
  vi.useFakeTimers({ toFake: ["performance", "Date"], now: 1_800_000_000_000 });
});
afterEach(() => {
  vi.useRealTimers();
});

const later = (ms: number) => vi.advanceTimersByTime(ms);
const SERVER = 1_700_000_000_000;

it("tells this machine's time as long as no server was met", () => {
  const clock = new RedisClock();
  later(5);
  expect(clock.now()).toBe(1_800_000_000_005);
});

it("tells the server's time from its first reply on, and goes on between replies", () => {
  const clock = new RedisClock();
  clock.observe(SERVER);
  later(250);
  expect(clock.now()).toBe(SERVER + 250);
});

it("believes the reply that was under way for the shortest time, whenever it came", () => {
  const clock = new RedisClock();
  const start = performance.now();
  // What the server's clock shows, less the time that the reply took.
  const reply = (tookMs: number) => clock.observe(SERVER + performance.now() - start - tookMs);
  const error = () => clock.now() - (SERVER + performance.now() - start);
  reply(300);
  expect(error()).toBe(-300);
  reply(2);
  expect(error()).toBe(-2);
  later(SECOND);
  reply(120);
  expect(error()).toBe(-2);
});

it("never runs ahead of a server, however late its replies are", () => {
  const clock = new RedisClock();
  const start = performance.now();
  for (let reply = 0; reply < 1_000; reply += 1) {
    later(37);
    const server = SERVER + performance.now() - start;
    clock.observe(server - ((reply * 7919) % 500));
    expect(clock.now()).toBeLessThanOrEqual(server);
  }
});

it.each([0, 1, 2.5, 4.9])(
  "keeps its best sample for five seconds at the least, heard %d s after the first",
  (after) => {
    const clock = new RedisClock();
    clock.observe(SERVER - after * SECOND - 50);
    later(after * SECOND);
    clock.observe(SERVER);
    for (let passed = 100; passed < 5 * SECOND; passed += 100) {
      later(100);
      clock.observe(SERVER + passed - 50);
      expect(clock.now()).toBe(SERVER + passed);
    }
  },
);

it("believes a server whose clock was set back, ten seconds later at the most", () => {
  const clock = new RedisClock();
  clock.observe(SERVER);
  const set = SERVER - 60 * SECOND;
  let passed = 0;
  while (clock.now() !== set + passed) {
    later(100);
    passed += 100;
    clock.observe(set + passed);
    expect(passed).toBeLessThanOrEqual(10 * SECOND);
  }
  expect(passed).toBeGreaterThan(5 * SECOND - 100);
});

it("believes a server whose clock was set forward at once", () => {
  const clock = new RedisClock();
  clock.observe(SERVER);
  clock.observe(SERVER + 60 * SECOND);
  expect(clock.now()).toBe(SERVER + 60 * SECOND);
});

it("does not hold what was heard before a long silence against what is heard after it", () => {
  const clock = new RedisClock();
  clock.observe(SERVER);
  later(10 * SECOND);
  clock.observe(SERVER - 60 * SECOND);
  expect(clock.now()).toBe(SERVER - 60 * SECOND);
});

it("is not moved by a step of this machine's clock", () => {
  const clock = new RedisClock();
  clock.observe(SERVER);
  vi.setSystemTime(1_000_000_000_000);
  later(10);
  expect(clock.now()).toBe(SERVER + 10);
});
