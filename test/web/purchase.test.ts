import { describe, expect, it } from "vitest";
import type { Reservation, ReservePayload } from "../../web/documents.js";
import type { Intention } from "../../web/intention.js";
import {
  type Answer,
  afterAnswer,
  afterHearing,
  afterLooking,
  mayBuy,
  movesUnseen,
  mustSend,
  type Purchase,
} from "../../web/purchase.js";

const NOW = Date.parse("2030-01-01T18:00:00Z");
const VERSIONS = { PENDING: 10, QUEUED: 20, SUCCESS: 30, SOLD_OUT: 90, FAILED: 90, RELEASED: 90 };

const intention: Intention = { requestId: "r1", itemId: "i1", quantity: 1, pressedAtMs: NOW, accepted: false };
const asking: Purchase = { kind: "asking", intention, trouble: null };
const looking: Purchase = { kind: "looking", trouble: null };

const reservation = (status: Reservation["status"], changes: Partial<Reservation> = {}): Reservation => ({
  requestId: "r1",
  item: { id: "i1" },
  quantity: 1,
  status,
  reasonCode: null,
  reason: null,
  ahead: status === "QUEUED" ? 3 : null,
  order:
    status === "SUCCESS"
      ? { id: "s.r1", totalMinor: 1, currency: "EUR", status: "PENDING_PAYMENT", payBy: "2030-01-01T18:15:00Z" }
      : null,
  version: VERSIONS[status],
  ...changes,
});
const reserved = (status: Reservation["status"], changes: Partial<Reservation> = {}) =>
  afterHearing(asking, reservation(status, changes));
const said = (
  status: ReservePayload["status"],
  more: Partial<ReservePayload> = {},
): Answer<{ reserve: ReservePayload }> => ({
  kind: "data",
  data: { reserve: { status, reservation: null, message: "as the API says it", retryAfterMs: null, ...more } },
});
const failed = (code: string, retryAfterMs: number | null = null): Answer<never> => ({
  kind: "error",
  code,
  message: "as the API says it",
  retryAfterMs,
});

describe("after an answer to reserve", () => {
  it.each([
    ["BUSY", said("BUSY", { retryAfterMs: 2_000 })],
    ["PENDING", said("PENDING", { reservation: reservation("PENDING"), retryAfterMs: 2_000 })],
    ["SERVICE_UNAVAILABLE", failed("SERVICE_UNAVAILABLE", 2_000)],
    ["OVERLOADED", failed("OVERLOADED", 2_000)],
    ["RATE_LIMITED", failed("RATE_LIMITED", 2_000)],
    ["INTERNAL_SERVER_ERROR", failed("INTERNAL_SERVER_ERROR", 2_000)],
    ["none at all", failed("UNREACHABLE", 2_000)],
  ])("%s the same request is sent again, not earlier than asked for", (_name, answer) => {
    const { purchase, againInMs } = afterAnswer(asking, answer, 0, 0.5);
    expect(mustSend(purchase)).toBe(true);
    expect("intention" in purchase && purchase.intention.requestId).toBe("r1");
    expect(againInMs).toBeGreaterThanOrEqual(2_000);
    expect(againInMs).toBeLessThan(3_000);
  });

  it("that never comes, the waits grow to a bound, and no two visitors wait the same", () => {
    const waitsOf = (random: number) =>
      Array.from(
        { length: 20 },
        (_, attempt) => afterAnswer(asking, failed("UNREACHABLE"), attempt, random).againInMs ?? 0,
      );
    const [least, most] = [waitsOf(0), waitsOf(1)];
    expect(most.slice(0, 5)).toEqual([500, 1_000, 2_000, 4_000, 8_000]);
    expect(Math.max(...most)).toBe(8_000);
    expect(least).toEqual(most.map((ms) => ms / 2));
  });

  it.each(["SOLD_OUT", "INSUFFICIENT", "LIMIT_EXCEEDED", "ENDED", "PAUSED", "REQUEST_CONFLICT"] as const)(
    "%s nothing is sent again by itself, and the visitor may",
    (status) => {
      const { purchase, againInMs } = afterAnswer(asking, said(status, { retryAfterMs: 1_000 }), 0, 0.5);
      expect(purchase).toEqual({ kind: "refused", intention, why: status, message: "as the API says it" });
      expect(againInMs).toBeNull();
      expect(mayBuy(purchase)).toBe(true);
    },
  );

  it.each(["BAD_USER_INPUT", "NOT_FOUND", "FORBIDDEN"])("%s it is over: it would come again", (code) => {
    const { purchase, againInMs } = afterAnswer(asking, failed(code), 0, 0.5);
    expect(purchase).toMatchObject({ kind: "refused", why: "ERROR" });
    expect(againInMs).toBeNull();
  });

  it("NOT_STARTED by a moment, which is what two clocks differ by, it is sent again at the start; else it is over", () => {
    expect(afterAnswer(asking, said("NOT_STARTED", { retryAfterMs: 300 }), 4, 0.5)).toEqual({
      purchase: asking,
      againInMs: 300,
    });
    expect(afterAnswer(asking, said("NOT_STARTED", { retryAfterMs: 60_000 }), 0, 0.5).purchase.kind).toBe("refused");
  });

  it("QUEUED or DECIDED it is what the server says, and nothing is sent again", () => {
    const queued = afterAnswer(asking, said("QUEUED", { reservation: reservation("QUEUED") }), 0, 0.5);
    expect(queued).toMatchObject({
      purchase: { kind: "reserved", reservation: { status: "QUEUED" } },
      againInMs: null,
    });
    const decided = afterAnswer(asking, said("DECIDED", { reservation: reservation("SUCCESS") }), 3, 0.5);
    expect(decided).toMatchObject({
      purchase: { kind: "reserved", reservation: { status: "SUCCESS" } },
      againInMs: null,
    });
  });

  it("ALREADY_RESERVED the other reservation is the one that is held and remembered", () => {
    const other = reservation("SUCCESS", { requestId: "r0", item: { id: "i0" } });
    const { purchase } = afterAnswer(asking, said("ALREADY_RESERVED", { reservation: other }), 0, 0.5);
    expect(purchase).toMatchObject({ kind: "reserved", existing: true, intention: { requestId: "r0", itemId: "i0" } });
    expect(mayBuy(purchase)).toBe(false);
  });

  it("that is late, what the subscription has told meanwhile stays", () => {
    const queued = reserved("QUEUED");
    expect(afterAnswer(queued, failed("UNREACHABLE"), 0, 0.5)).toEqual({ purchase: queued, againInMs: null });
    expect(afterAnswer(queued, said("SOLD_OUT"), 0, 0.5).purchase).toBe(queued);
  });

  it("a PENDING one that was forgotten can still be refused", () => {
    expect(afterAnswer(reserved("PENDING"), said("SOLD_OUT"), 1, 0.5).purchase).toMatchObject({ why: "SOLD_OUT" });
  });
});

describe("what is heard", () => {
  it("never takes a purchase back to an older version", () => {
    const success = reserved("SUCCESS");
    expect(afterHearing(success, reservation("QUEUED"))).toBe(success);
    expect(afterHearing(reserved("RELEASED"), reservation("SUCCESS"))).toMatchObject({
      reservation: { status: "RELEASED" },
    });
  });

  it("of the same version tells the place in line", () => {
    expect(afterHearing(reserved("QUEUED"), reservation("QUEUED", { ahead: 1 }))).toMatchObject({
      reservation: { ahead: 1 },
    });
  });

  it("without an order takes none away", () => {
    const known = reserved("SUCCESS");
    expect(afterHearing(known, reservation("SUCCESS", { order: null }))).toEqual(known);
  });

  it("of SUCCESS alone makes it the visitor's: while anything else is said he may not have it", () => {
    for (const status of ["PENDING", "QUEUED", "SUCCESS"] as const) expect(mayBuy(reserved(status))).toBe(false);
    for (const status of ["SOLD_OUT", "FAILED", "RELEASED"] as const) expect(mayBuy(reserved(status))).toBe(true);
  });

  it("leaves something to ask for only in line, and where an order is missing", () => {
    expect(movesUnseen(reserved("QUEUED"))).toBe(true);
    expect(movesUnseen(reserved("SUCCESS", { order: null }))).toBe(true);
    expect(movesUnseen(reserved("SUCCESS"))).toBe(false);
    expect(movesUnseen(asking)).toBe(false);
  });
});

describe("after a reload", () => {
  const nothing = { remembered: null, latest: null };

  it("the remembered request is found again", () => {
    const found = { remembered: reservation("QUEUED"), latest: null };
    expect(afterLooking(looking, intention, found, NOW)).toEqual(reserved("QUEUED"));
  });

  it("the buyer's latest one is found where nothing was remembered", () => {
    const found = { remembered: null, latest: reservation("SUCCESS") };
    expect(afterLooking(looking, null, found, NOW)).toMatchObject({ kind: "reserved", intention: { requestId: "r1" } });
  });

  it("a later one of another tab is shown instead of a remembered one that failed", () => {
    const found = { remembered: reservation("FAILED"), latest: reservation("QUEUED", { requestId: "r2" }) };
    expect(afterLooking(looking, intention, found, NOW)).toMatchObject({ reservation: { requestId: "r2" } });
  });

  it("a request that never arrived is sent again with its own id, if it was pressed for a moment ago", () => {
    expect(afterLooking(looking, intention, nothing, NOW + 60_000)).toEqual(asking);
    expect(afterLooking(looking, intention, nothing, NOW + 3_600_000)).toEqual({ kind: "idle" });
    expect(afterLooking(looking, intention, nothing, null)).toEqual({ kind: "idle" });
  });

  it("one that was durable and is gone is never bought again by itself", () => {
    expect(afterLooking(looking, { ...intention, accepted: true }, nothing, NOW)).toEqual({ kind: "idle" });
  });

  it("with nothing remembered and nothing found nothing is shown", () => {
    expect(afterLooking(looking, null, nothing, NOW)).toEqual({ kind: "idle" });
  });
});

describe("on return from an outage", () => {
  it("a decision that fell into it is heard", () => {
    const found = { remembered: reservation("SUCCESS"), latest: reservation("SUCCESS") };
    expect(afterLooking(reserved("QUEUED"), intention, found, NOW)).toEqual(reserved("SUCCESS"));
  });

  it("a request under way stays under way until it is answered itself", () => {
    expect(afterLooking(asking, intention, { remembered: null, latest: null }, NOW)).toBe(asking);
  });

  it("what another tab reserved is shown where nothing is held here", () => {
    const found = { remembered: null, latest: reservation("QUEUED", { requestId: "r2" }) };
    expect(afterLooking({ kind: "idle" }, null, found, NOW)).toMatchObject({ reservation: { requestId: "r2" } });
    expect(afterLooking(asking, intention, found, NOW)).toBe(asking);
  });

  it("news of an intention that was given up meanwhile change nothing", () => {
    const next: Purchase = { ...asking, intention: { ...intention, requestId: "r9" } };
    expect(afterLooking(next, null, { remembered: reservation("FAILED"), latest: null }, NOW)).toBe(next);
  });
});
