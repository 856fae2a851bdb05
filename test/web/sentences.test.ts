import { describe, expect, it } from "vitest";
import type { Reservation, Sale } from "../../web/documents.js";
import { newsBetween } from "../../web/news.js";
import { afterHearing, type Purchase, type Refusal } from "../../web/purchase.js";
import { countdownText, purchaseText, type SettlementState } from "../../web/sentences.js";
import { NOTHING, type Settling } from "../../web/settling.js";
import type { Shown } from "../../web/view.js";

const NOW = Date.parse("2030-01-01T18:00:00Z");

const sale: Sale = {
  id: "s",
  title: "A drop",
  state: "OPEN",
  pauseReason: null,
  opensAt: "2030-01-01T17:00:00Z",
  closesAt: "2030-01-01T20:00:00Z",
  items: [{ id: "i1", title: "Poster", priceMinor: 2_500, currency: "EUR", initial: 5, remaining: 3 }],
  version: 1,
};
const intention = { requestId: "r1", itemId: "i1", quantity: 1, pressedAtMs: NOW, accepted: false };
const asking: Purchase = { kind: "asking", intention, trouble: null };
const reserved = (status: Reservation["status"], more: Partial<Reservation> = {}) =>
  afterHearing(asking, {
    requestId: "r1",
    item: { id: "i1" },
    quantity: 2,
    status,
    reasonCode: null,
    reason: null,
    ahead: null,
    order: null,
    version: 1,
    ...more,
  });
const order = {
  id: "s.r1",
  totalMinor: 5_000,
  currency: "EUR",
  status: "PENDING_PAYMENT",
  payBy: "2030-01-01T18:14:59Z",
} as const;
const settlement = { settling: NOTHING, moneyBack: false };
const say = (purchase: Purchase, nowMs = NOW, more: Partial<SettlementState> = {}) =>
  purchaseText(purchase, { ...settlement, ...more }, sale, nowMs);

describe("the visitor is told", () => {
  it("that it is his only when the server said SUCCESS", () => {
    const purchases: Purchase[] = [
      asking,
      reserved("PENDING"),
      reserved("QUEUED"),
      reserved("SOLD_OUT"),
      reserved("FAILED"),
    ];
    for (const purchase of purchases) expect(say(purchase)).not.toMatchObject({ tone: "good" });
    expect(say(reserved("SUCCESS", { order }))).toMatchObject({ title: "Yours", what: "2 × Poster", tone: "good" });
  });

  it.each([
    [1_234, "In line: 1,234 ahead"],
    [1, "In line: 1 ahead"],
    [0, "In line: you are next"],
    [null, "In line"],
  ])("with %s ahead: %s", (ahead, title) => {
    expect(say(reserved("QUEUED", { ahead }))?.title).toBe(title);
  });

  it("what he owes and until when, by the server's time, and that the time is over when it is", () => {
    const facts = (nowMs: number) => Object.fromEntries(say(reserved("SUCCESS", { order }), nowMs)?.facts ?? []);
    expect(facts(NOW)).toMatchObject({ Order: "s.r1", Total: "€50.00", "Time left": "14:59" });
    expect(facts(NOW + 3_600_000)).toMatchObject({ "Time left": "none" });
    const paid = say(reserved("SUCCESS", { order: { ...order, status: "PAID" } }));
    expect(paid).toMatchObject({ title: "Paid. Thank you", tone: "good", actions: [] });
    expect(Object.keys(Object.fromEntries(paid?.facts ?? []))).toEqual(["Total", "Order"]);
  });

  it("that he may pay or give it back, for as long as there is time", () => {
    const unpaid = reserved("SUCCESS", { order });
    expect(say(unpaid)).toMatchObject({ detail: "Pay for it to keep it.", actions: ["pay", "ask_back"] });
    expect(say(unpaid, Date.parse(order.payBy))).toMatchObject({ detail: "The time to pay is over.", actions: [] });
  });

  it.each<[Settling, string, string[]]>([
    [{ kind: "paying", trouble: null }, "Paying", []],
    [{ kind: "giving_back", trouble: "busy" }, "Giving it back", []],
    [{ kind: "asking_back" }, "Give it back?", ["keep", "give_back"]],
    [{ kind: "failed", message: "Because." }, "Yours", ["pay", "ask_back"]],
  ])("what he is about: %j", (settling, title, actions) => {
    expect(say(reserved("SUCCESS", { order }), NOW, { settling })).toMatchObject({ title, actions });
    // What is paid is paid, whatever the page was about.
    const paid = reserved("SUCCESS", { order: { ...order, status: "PAID" } });
    expect(say(paid, NOW, { settling })).toMatchObject({ title: "Paid. Thank you", actions: [] });
  });

  it.each([
    ["CANCELLED_BY_BUYER", "Given back"],
    ["CANCELLED_BY_OPERATOR", "Cancelled"],
    ["PAYMENT_EXPIRED", "Not paid in time"],
    ["REFUNDED", "Refunded"],
    [null, "No longer yours"],
  ])("how it ended, %s, and that he may buy again where there is stock", (reasonCode, title) => {
    const released = reserved("RELEASED", { reasonCode, reason: "Because." });
    expect(say(released)).toMatchObject({ title, detail: "Because. You may buy it again.", actions: ["buy_again"] });
    expect(say(released, Date.parse(sale.closesAt))).toMatchObject({ title, detail: "Because.", actions: [] });
    expect(say(released, NOW, { moneyBack: true })?.detail).toContain("the money is given back");
  });

  it("the reason where the server gives one", () => {
    for (const status of ["SOLD_OUT", "FAILED", "RELEASED"] as const) {
      expect(say(reserved(status, { reason: "Because." }))?.detail).toMatch(/^Because\./);
    }
  });

  it.each<Refusal>([
    "SOLD_OUT",
    "INSUFFICIENT",
    "LIMIT_EXCEEDED",
    "NOT_STARTED",
    "ENDED",
    "PAUSED",
    "REQUEST_CONFLICT",
    "ERROR",
  ])("a plain sentence for %s, and no code", (why) => {
    const text = say({ kind: "refused", intention, why, message: "Only 1 left." });
    expect(`${text?.title}. ${text?.detail}`).not.toMatch(/[A-Z]{2}|_/);
    expect(text?.detail).toMatch(/\.$/);
  });

  it("nothing of a countdown while no server's time is known", () => {
    expect(countdownText(sale, null)).toBeNull();
    expect(countdownText(sale, NOW)).toEqual({ label: "Closes in", time: "2:00:00" });
  });
});

describe("a screen reader is told", () => {
  const shown = (more: Partial<Shown> = {}): Shown => ({
    sale,
    notice: null,
    purchase: { kind: "idle" },
    settlement,
    connection: "connected",
    buyerId: "b",
    nowMs: NOW,
    ...more,
  });
  const news = (before: Shown, after: Shown) => newsBetween(before, after).map(({ text }) => text);

  it("nothing of a second that passes, a unit that goes, and a place that is gained", () => {
    const inLine = shown({ purchase: reserved("QUEUED", { ahead: 5 }) });
    const later = shown({
      nowMs: NOW + 1_000,
      sale: { ...sale, items: sale.items.map((item) => ({ ...item, remaining: 2 })) },
      purchase: reserved("QUEUED", { ahead: 4 }),
    });
    expect(news(inLine, later)).toEqual([]);
  });

  it("each change of state, of the purchase, the sale, the connection and the stock", () => {
    expect(news(shown(), shown({ purchase: asking }))).toEqual(["Asking for it. Nothing is yours yet."]);
    expect(news(shown(), shown({ connection: "lost" }))).toEqual(["Connection lost, trying again."]);
    expect(news(shown({ connection: "lost" }), shown())).toEqual(["Connected again."]);
    const paused = { ...sale, state: "PAUSED", pauseReason: "tea" } as const;
    expect(news(shown(), shown({ sale: paused }))).toEqual(["The sale: Paused. The seller has paused this sale: tea."]);
    const gone = { ...sale, items: sale.items.map((item) => ({ ...item, remaining: 0 })) };
    expect(news(shown(), shown({ sale: gone }))).toEqual(["Poster is sold out."]);
  });

  it("each step of paying and giving back, once", () => {
    const unpaid = (settling: Settling) =>
      shown({ purchase: reserved("SUCCESS", { order }), settlement: { settling, moneyBack: false } });
    expect(news(shown(), unpaid(NOTHING))).toEqual(["Yours. Pay for it to keep it."]);
    expect(news(unpaid(NOTHING), unpaid({ kind: "asking_back" }))).toEqual([
      "Give it back? Somebody else may get it then.",
    ]);
    const paying = unpaid({ kind: "paying", trouble: null });
    expect(news(unpaid(NOTHING), paying)).toHaveLength(1);
    expect(news(paying, { ...paying, nowMs: NOW + 1_000 })).toEqual([]);
  });

  it("that the sale opens, when it does", () => {
    const opensAt = Date.parse(sale.opensAt);
    expect(news(shown({ nowMs: opensAt - 1 }), shown({ nowMs: opensAt }))).toEqual(["The sale: Open."]);
  });
});
