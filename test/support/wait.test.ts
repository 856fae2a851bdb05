import { describe, expect, it } from "vitest";
import { waitFor } from "./wait.js";

describe("waitFor", () => {
  it("returns the first answer that is one", async () => {
    const answers = [undefined, null, false, 0];
    expect(await waitFor(() => answers.shift(), { what: "an answer" })).toBe(0);
  });

  it("asks again after a probe that threw", async () => {
    let calls = 0;
    const probe = async () => {
      calls += 1;
      if (calls < 3) throw new Error("not yet");
      return "here";
    };
    expect(await waitFor(probe, { what: "the third call" })).toBe("here");
  });

  it("says what it waited for, how long, and the last answer", async () => {
    await expect(waitFor(() => false, { what: "a miracle", timeoutMs: 20 })).rejects.toThrow(
      "waited 20 ms for a miracle; the last answer was false",
    );
  });

  it("gives up on a probe that hangs", async () => {
    const hanging = () => new Promise<never>(() => {});
    await expect(waitFor(hanging, { what: "an echo", timeoutMs: 20 })).rejects.toThrow("the probe never came back");
  });
});
