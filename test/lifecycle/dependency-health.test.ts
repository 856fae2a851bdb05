import { afterEach, describe, expect, it } from "vitest";
import { type DependencyHealth, watchDependency } from "../../src/lifecycle/dependency-health.js";

let health: DependencyHealth | undefined;
afterEach(() => health?.stop());

/** A dependency that does as it is told, and what was heard of it. */
function watched(answer: () => Promise<unknown>, intervalMs = 5) {
  const control = { answer, probes: 0 };
  const changes: boolean[] = [];
  const watching = watchDependency({
    probe: () => {
      control.probes += 1;
      return control.answer();
    },
    intervalMs,
    timeoutMs: 20,
  });
  watching.onChange((up) => changes.push(up));
  health = watching;
  return { watching, control, changes };
}

const fine = () => Promise.resolve();
const failing = () => Promise.reject(new Error("away"));
const hanging = () => new Promise(() => {});
const throwing = () => {
  throw new Error("at once");
};

describe("watching a dependency", () => {
  for (const [what, answer] of Object.entries({ failing, hanging, throwing })) {
    it(`that is ${what} finds it down, and up again at the first answer`, async () => {
      const { watching, control, changes } = watched(fine);
      // Nothing is believed of it before its first answer.
      expect(watching.isUp()).toBe(false);
      await expect.poll(() => watching.isUp()).toBe(true);
      control.answer = answer;
      await expect.poll(() => watching.isUp()).toBe(false);
      control.answer = fine;
      await expect.poll(() => watching.isUp()).toBe(true);
      expect(changes).toEqual([true, false, true]);
    });
  }

  it("asks at once where a caller says that it failed him, and believes its answer", async () => {
    const { watching, control, changes } = watched(fine, 60_000);
    await expect.poll(() => watching.isUp()).toBe(true);
    watching.reportFailure();
    await expect.poll(() => control.probes).toBe(2);
    expect(watching.isUp()).toBe(true);
    control.answer = failing;
    watching.reportFailure();
    watching.reportFailure();
    await expect.poll(() => watching.isUp()).toBe(false);
    expect(changes).toEqual([true, false]);
  });

  it("looks sooner while it is down than while it is up", async () => {
    const { watching, control } = watched(failing, 60_000);
    await expect.poll(() => control.probes).toBeGreaterThan(1);
    control.answer = fine;
    await expect.poll(() => watching.isUp(), { timeout: 5_000 }).toBe(true);
  });

  it("tells nobody who has gone, and asks no more once it is stopped", async () => {
    const { watching, control, changes } = watched(fine);
    const heard: boolean[] = [];
    const stopListening = watching.onChange((up) => heard.push(up));
    stopListening();
    await expect.poll(() => changes).toEqual([true]);
    control.answer = failing;
    await expect.poll(() => changes).toEqual([true, false]);
    expect(heard).toEqual([]);
    watching.stop();
    control.answer = fine;
    const { probes } = control;
    // Another watch of the same pace tells that there was time enough for more.
    const clock = watched(fine);
    await expect.poll(() => clock.control.probes).toBeGreaterThan(5);
    expect(control.probes).toBe(probes);
    expect(watching.isUp()).toBe(false);
  });
});
