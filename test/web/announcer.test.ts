import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createAnnouncer } from "../../web/announcer.js";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
});
afterEach(() => {
  vi.useRealTimers();
});

describe("what screen readers are told", () => {
  it("comes at once, then at most every second and a half, of each topic only the newest", async () => {
    const heard: string[] = [];
    const { say } = createAnnouncer((text) => heard.push(text));
    say("purchase", "Asking.");
    say("sale", "Open.");
    await Promise.resolve();
    expect(heard).toEqual(["Asking. Open."]);
    say("purchase", "In line.");
    say("purchase", "Yours.");
    say("sale", "Open.");
    await vi.advanceTimersByTimeAsync(1_400);
    expect(heard).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(200);
    expect(heard).toEqual(["Asking. Open.", "Yours."]);
  });

  it("is said again when it is true again", async () => {
    const heard: string[] = [];
    const { say } = createAnnouncer((text) => heard.push(text));
    for (const text of ["Lost.", "Connected.", "Lost."]) {
      say("connection", text);
      await vi.advanceTimersByTimeAsync(2_000);
    }
    expect(heard).toEqual(["Lost.", "Connected.", "Lost."]);
  });
});
