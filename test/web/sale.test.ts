import { describe, expect, it } from "vitest";
import type { Sale } from "../../web/documents.js";
import { countdownTarget, foremost, newerSale, phaseOf } from "../../web/sale.js";

const OPENS = Date.parse("2030-01-01T18:00:00Z");
const CLOSES = Date.parse("2030-01-01T20:00:00Z");

const sale = (changes: Partial<Sale> = {}): Sale => ({
  id: "s",
  title: "A drop",
  state: "OPEN",
  pauseReason: null,
  opensAt: new Date(OPENS).toISOString(),
  closesAt: new Date(CLOSES).toISOString(),
  items: [],
  version: 1,
  ...changes,
});

describe("a sale", () => {
  it.each([
    ["before", OPENS - 1],
    ["open", OPENS],
    ["open", CLOSES - 1],
    ["ended", CLOSES],
  ])("is %s at %d, to the millisecond of the server's time", (phase, nowMs) => {
    expect(phaseOf(sale(), nowMs)).toBe(phase);
  });

  it("that is paused or closed is so at once, whatever its times say", () => {
    expect(phaseOf(sale({ state: "PAUSED" }), OPENS)).toBe("paused");
    expect(phaseOf(sale({ state: "PAUSED" }), OPENS - 1)).toBe("paused");
    expect(phaseOf(sale({ state: "CLOSED" }), OPENS)).toBe("ended");
    expect(phaseOf(sale({ state: "CLOSED" }), null)).toBe("ended");
  });

  it("to show is the newest in which something can be bought, and no later one that is sold out or has not begun", () => {
    const item = { id: "i", title: "T", priceMinor: 1, currency: "EUR", initial: 5 };
    const later = sale({
      id: "later",
      opensAt: new Date(OPENS + 1_000).toISOString(),
      items: [{ ...item, remaining: 5 }],
    });
    const gone = sale({ id: "gone", items: [{ ...item, remaining: 0 }] });
    const [stocked, older] = ["stocked", "older"].map((id) => sale({ id, items: [{ ...item, remaining: 1 }] })) as [
      Sale,
      Sale,
    ];
    expect(foremost([later, gone, stocked, older], OPENS)?.id).toBe("stocked");
    expect(foremost([later, gone], OPENS)?.id).toBe("gone");
    expect(foremost([later], OPENS)?.id).toBe("later");
    expect(foremost([], OPENS)).toBeNull();
  });

  it("is never called open by a clock that isn't known", () => {
    expect(phaseOf(sale(), null)).toBe("unknown");
  });

  it("is counted down to its opening, then to its end, and not while it is paused", () => {
    expect(countdownTarget(sale(), "before")).toBe(OPENS);
    expect(countdownTarget(sale(), "open")).toBe(CLOSES);
    expect(countdownTarget(sale(), "paused")).toBeNull();
  });

  it("never goes back to an older version", () => {
    const known = sale({ version: 7 });
    expect(newerSale(known, sale({ version: 6 }))).toBe(known);
    const later = sale({ version: 8 });
    expect(newerSale(known, later)).toBe(later);
    expect(newerSale(null, known)).toBe(known);
  });
});
