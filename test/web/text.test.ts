import { describe, expect, it } from "vitest";
import { countdown, grouped, money, timeOfDay, units, untilNextSecond } from "../../web/text.js";

describe("countdown", () => {
  it.each([
    [0, "00:00"],
    [-5_000, "00:00"],
    [1, "00:01"],
    [1_000, "00:01"],
    [1_001, "00:02"],
    [59_999, "01:00"],
    [3_599_000, "59:59"],
    [3_600_000, "1:00:00"],
    [86_399_000, "23:59:59"],
    [86_400_000, "1 d 00:00:00"],
    [93_784_000, "1 d 02:03:04"],
  ])("of %d ms is %s: a second that has begun is still left", (leftMs, text) => {
    expect(countdown(leftMs)).toBe(text);
  });

  it.each([
    [10_000, 9_000, 1_000],
    [10_000, 9_250, 750],
    [10_000, 10_000, 1_000],
    [10_000, 10_400, 600],
  ])("to %d at %d changes after %d ms", (targetMs, nowMs, afterMs) => {
    expect(untilNextSecond(targetMs, nowMs)).toBe(afterMs);
  });
});

describe("money", () => {
  it.each([
    [19_900, "EUR", "€199.00"],
    [5, "EUR", "€0.05"],
    [123_456_789, "USD", "$1,234,567.89"],
    [19_900, "JPY", "¥19,900"],
    [19_900, "KWD", "KWD 19.900"],
  ])("%d of %s is %s, by the currency's own digits", (minor, currency, text) => {
    expect(money(minor, currency).replaceAll("\u00a0", " ")).toBe(text);
  });

  it("of a currency that the browser doesn't take for one is still a number and a name", () => {
    expect(money(1_000, "€€")).toBe("1,000 €€");
  });
});

describe("numbers and times", () => {
  it("are grouped and counted", () => {
    expect([grouped(12_345), units(1), units(1_000)]).toEqual(["12,345", "1 unit", "1,000 units"]);
  });

  it("name the day where that is another one", () => {
    const noon = new Date(2030, 0, 1, 12).getTime();
    expect(timeOfDay(noon, noon)).toBe("12:00");
    expect(timeOfDay(noon, noon - 24 * 3_600_000)).toMatch(/1.*12:00/);
  });
});
