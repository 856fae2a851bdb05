import { describe, expect, it } from "vitest";
import { spawnNode } from "./processes.js";
import { waitFor } from "./wait.js";

const spawnFixture = (env?: Record<string, string>) => spawnNode("test/support/fixtures/greeter.ts", env);

describe("spawnNode", () => {
  it("runs TypeScript with the given environment and no other", async () => {
    const greeter = await spawnFixture({ GREETING: "good morning" });
    expect((await greeter.waitForLine(/^says (.*)$/))[1]).toBe("good morning");
    await greeter.waitForLine(/^inherits GREETING, HOME, NODE_ENV, PATH$/);
  });

  it("finds a line that was printed before it was asked for", async () => {
    const greeter = await spawnFixture();
    await greeter.waitForLine(/ready/);
    await greeter.waitForLine(/^says/);
  });

  it("says what was printed when the line never comes", async () => {
    const greeter = await spawnFixture({ GREETING: "goodbye", EXIT: "3" });
    await expect(greeter.waitForLine(/never/)).rejects.toThrow(
      /ended \(3\) without a line like \/never\/.*says goodbye/s,
    );
    expect(await greeter.exited).toEqual({ code: 3, signal: null });
  });

  it("passes signals on", async () => {
    const greeter = await spawnFixture();
    await greeter.waitForLine(/ready/);
    greeter.kill("SIGTERM");
    await greeter.waitForLine(/got SIGTERM/);
    greeter.kill("SIGKILL");
    expect(await greeter.exited).toEqual({ code: null, signal: "SIGKILL" });
    await waitFor(() => !isAlive(greeter.pid), { what: "the process to be gone" });
  });
});

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
