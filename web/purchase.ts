/** The states of one intention to buy, and what each answer makes of them. Pure: sending and waiting is purchase-flow's. */
import type { Reservation, ReservePayload, ReserveStatus } from "./documents.js";
import type { Intention } from "./intention.js";
import { backoffMs } from "./waits.js";

/** Why the page is still trying. */
export type Trouble = "busy" | "unavailable" | "unreachable";

/** Answers after which nothing is held and nothing is sent again. */
export type Refusal = Exclude<ReserveStatus, "QUEUED" | "PENDING" | "DECIDED" | "ALREADY_RESERVED" | "BUSY"> | "ERROR";

export type Purchase =
  | { readonly kind: "idle" }
  /** after a reload: what became of it is being asked */
  | { readonly kind: "looking"; readonly trouble: Trouble | null }
  /** sent, perhaps several times, without an answer that tells what became of it */
  | { readonly kind: "asking"; readonly intention: Intention; readonly trouble: Trouble | null }
  /** the server told of it; `existing` where another request of the buyer had been accepted before */
  | {
      readonly kind: "reserved";
      readonly intention: Intention;
      readonly reservation: Reservation;
      readonly existing: boolean;
      readonly trouble: Trouble | null;
    }
  | { readonly kind: "refused"; readonly intention: Intention; readonly why: Refusal; readonly message: string }
  /** the buyer's token was refused, and there is no way to be the same buyer again */
  | { readonly kind: "stranger" };

/** What a request came to: the API's answer, or why there is none. */
export type Answer<Data> =
  | { readonly kind: "data"; readonly data: Data }
  | {
      readonly kind: "error";
      /** the API's error codes, or UNREACHABLE where no answer came that could be read */
      readonly code: string;
      readonly message: string;
      readonly retryAfterMs: number | null;
    };

/** After a reload this long after pressing the button the request is sent again by itself; later the visitor must press again. */
const STILL_MEANT_MS = 2 * 60_000;

/** The clocks of page and server may differ by a moment at the opening: a sale that starts this soon is waited for. */
const STARTS_SOON_MS = 5_000;

export function isLive({ status }: Reservation): boolean {
  return status === "PENDING" || status === "QUEUED" || status === "SUCCESS";
}

/** Whether the visitor may press the button: nothing of his is held or may be held. */
export function mayBuy(purchase: Purchase): boolean {
  if (purchase.kind === "reserved") return !isLive(purchase.reservation);
  return purchase.kind === "idle" || purchase.kind === "refused" || purchase.kind === "stranger";
}

type Reserved = Extract<Purchase, { kind: "reserved" }>;
type Sendable = Reserved | Extract<Purchase, { kind: "asking" }>;

/** Whether the request must be sent (again): it isn't known to be durable. */
export function mustSend(purchase: Purchase): purchase is Sendable {
  return purchase.kind === "asking" || (purchase.kind === "reserved" && purchase.reservation.status === "PENDING");
}

/** Whether there is more to learn than the subscription tells, which is silent between two states: the place in line. */
export function movesUnseen(purchase: Purchase): purchase is Reserved {
  if (purchase.kind !== "reserved") return false;
  const { status, order } = purchase.reservation;
  return status === "QUEUED" || (status === "SUCCESS" && !order);
}

/** A purchase, and when to send its request again, if at all. */
export interface Step {
  readonly purchase: Purchase;
  readonly againInMs: number | null;
}

/**
 * What an answer to `reserve` makes of a purchase.
 *
 * @param attempt how often the request had been sent before
 * @param random from 0 to 1
 */
export function afterAnswer(
  purchase: Purchase,
  answer: Answer<{ reserve: ReservePayload }>,
  attempt: number,
  random: number,
): Step {
  // Meanwhile the subscription may have told more than this answer knows.
  if (!mustSend(purchase)) return { purchase, againInMs: null };
  const again = (trouble: Trouble, retryAfterMs: number | null): Step => ({
    purchase: { ...purchase, trouble },
    againInMs: Math.max(backoffMs(attempt, random), (retryAfterMs ?? 0) * (1 + random / 4)),
  });
  if (answer.kind === "error") {
    const trouble = troubleOf(answer.code);
    return trouble ? again(trouble, answer.retryAfterMs) : refused(purchase, "ERROR", answer.message);
  }
  const { status, reservation, message, retryAfterMs } = answer.data.reserve;
  switch (status) {
    case "QUEUED":
    case "PENDING":
    case "DECIDED":
    case "ALREADY_RESERVED": {
      // Not something that the API says. Asking once more is better than guessing.
      if (!reservation) return again("unavailable", retryAfterMs);
      const heard = afterHearing(purchase, reservation, status === "ALREADY_RESERVED");
      return { purchase: heard, againInMs: mustSend(heard) ? again("unavailable", retryAfterMs).againInMs : null };
    }
    case "BUSY":
      return again("busy", retryAfterMs);
    case "NOT_STARTED":
      if (retryAfterMs === null || retryAfterMs > STARTS_SOON_MS) return refused(purchase, status, message);
      return { purchase: { ...purchase, trouble: null }, againInMs: retryAfterMs };
    case "SOLD_OUT":
    case "INSUFFICIENT":
    case "LIMIT_EXCEEDED":
    case "ENDED":
    case "PAUSED":
    case "REQUEST_CONFLICT":
      return refused(purchase, status, message);
  }
}

function refused({ intention }: Sendable, why: Refusal, message: string): Step {
  return { purchase: { kind: "refused", intention, why, message }, againInMs: null };
}

/**
 * Why a failed request may be sent again, or null where it would fail again. An error inside the server tells nothing of
 * what became of the request, so it is asked again too: a repeat is harmless.
 */
export function troubleOf(code: string): Trouble | null {
  switch (code) {
    case "OVERLOADED":
    case "RATE_LIMITED":
      return "busy";
    case "SERVICE_UNAVAILABLE":
    case "INTERNAL_SERVER_ERROR":
      return "unavailable";
    case "UNREACHABLE":
      return "unreachable";
    default:
      return null;
  }
}

/** What news of a reservation makes of a purchase. What is older than what is known changes nothing. */
export function afterHearing(purchase: Purchase, reservation: Reservation, existing = false): Purchase {
  const own = "intention" in purchase && purchase.intention.requestId === reservation.requestId;
  const known = own && purchase.kind === "reserved" ? purchase : null;
  if (known && reservation.version < known.reservation.version) return purchase;
  const pressedAtMs = own ? purchase.intention.pressedAtMs : 0;
  return {
    kind: "reserved",
    intention: {
      requestId: reservation.requestId,
      itemId: reservation.item.id,
      quantity: reservation.quantity,
      pressedAtMs,
      accepted: reservation.status !== "PENDING",
    },
    // An order may be left out while the database doesn't answer; it is none the less there.
    reservation: { ...reservation, order: reservation.order ?? known?.reservation.order ?? null },
    existing: known ? known.existing : existing,
    trouble: null,
  };
}

/**
 * What is known after asking for the remembered request and for the buyer's latest one: after a reload, or on return from
 * an outage. `remembered` is what the page had stored, if anything.
 */
export function afterLooking(
  purchase: Purchase,
  remembered: Intention | null,
  found: { readonly remembered: Reservation | null; readonly latest: Reservation | null },
  nowMs: number | null,
): Purchase {
  const { remembered: own, latest } = found;
  if (purchase.kind === "looking") {
    const asked: Purchase = remembered ? { kind: "asking", intention: remembered, trouble: null } : purchase;
    if (own && (isLive(own) || !latest || latest.requestId === own.requestId)) return afterHearing(asked, own);
    const stillMeant =
      remembered !== null && !remembered.accepted && nowMs !== null && nowMs - remembered.pressedAtMs < STILL_MEANT_MS;
    if (stillMeant && !(latest && isLive(latest))) return asked;
    return latest ? afterHearing(purchase, latest) : { kind: "idle" };
  }
  const asked = own && "intention" in purchase && purchase.intention.requestId === own.requestId;
  const heard = asked ? afterHearing(purchase, own) : purchase;
  // Accepted by another tab, or by an answer that got lost; one's own request under way finds out by itself.
  return latest && isLive(latest) && mayBuy(heard) ? afterHearing(heard, latest) : heard;
}
