import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Verifier } from "../../src/admission/identity.js";
import { rememberTokens } from "../../src/admission/token-cache.js";
import { HOUR, MINUTE, SECOND } from "../../src/domain/time.js";

let verified: string[];
let refuse: Error | null;
let lifeMs: number;
let verifier: Verifier;

beforeEach(() => {
  vi.useFakeTimers();
  verified = [];
  refuse = null;
  lifeMs = 1 * HOUR;
  verifier = rememberTokens(
    {
      async verify(token) {
        verified.push(token);
        if (refuse) throw refuse;
        return { role: "buyer", buyerId: `of ${token}`, expiresAt: Date.now() + lifeMs };
      },
    },
    10 * MINUTE,
  );
});
afterEach(() => {
  vi.useRealTimers();
});

describe("a token", () => {
  it("is verified once, and each is its own", async () => {
    const [a, b] = [await verifier.verify("a"), await verifier.verify("b")];
    expect([a.buyerId, b.buyerId]).toEqual(["of a", "of b"]);
    expect([await verifier.verify("a"), await verifier.verify("b")]).toEqual([a, b]);
    expect(verified).toEqual(["a", "b"]);
  });

  it("is verified again once it has expired", async () => {
    lifeMs = 30 * SECOND;
    await verifier.verify("a");
    vi.advanceTimersByTime(29 * SECOND);
    await verifier.verify("a");
    expect(verified).toHaveLength(1);
    vi.advanceTimersByTime(1 * SECOND);
    refuse = new Error("expired");
    await expect(verifier.verify("a")).rejects.toBe(refuse);
  });

  it("that lives long is verified again after ten minutes: its key may have been withdrawn", async () => {
    await verifier.verify("a");
    vi.advanceTimersByTime(10 * MINUTE - 1);
    await verifier.verify("a");
    expect(verified).toHaveLength(1);
    vi.advanceTimersByTime(1);
    refuse = new Error("withdrawn");
    await expect(verifier.verify("a")).rejects.toBe(refuse);
  });

  it("that is not valid is not remembered, and one that becomes valid is taken", async () => {
    refuse = new Error("not valid yet");
    await expect(verifier.verify("a")).rejects.toBe(refuse);
    await expect(verifier.verify("a")).rejects.toBe(refuse);
    refuse = null;
    expect(await verifier.verify("a")).toMatchObject({ buyerId: "of a" });
    expect(verified).toHaveLength(3);
  });

  it("is forgotten when many others come, and long ones sooner", async () => {
    await verifier.verify("a");
    for (let at = 0; at < 50_000; at += 1) await verifier.verify(`other ${at}`);
    await verifier.verify("a");
    expect(verified.filter((token) => token === "a")).toHaveLength(2);
    const long = "x".repeat(8_000);
    verified = [];
    for (let at = 0; at < 3_000; at += 1) await verifier.verify(`${at} ${long}`);
    await verifier.verify("a");
    expect(verified.at(-1)).toBe("a");
  });
});
