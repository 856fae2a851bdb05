/**
 * The one table of what a request can have come to. A stage joins the reservation's status with its order's status;
 * its rank only ever grows, which makes every repeat and late arrival harmless: whoever carries a lower or equal rank
 * changes nothing. The rank is also what clients see as `Reservation.version`, so it survives the loss of Redis.
 */
export const RESERVATION_STATUSES = ["PENDING", "QUEUED", "SUCCESS", "SOLD_OUT", "FAILED", "RELEASED"] as const;
export type ReservationStatus = (typeof RESERVATION_STATUSES)[number];

export const ORDER_STATUSES = [
  "PENDING_PAYMENT",
  "PAID",
  "CANCELLED",
  "EXPIRED",
  "REFUND_PENDING",
  "REFUNDED",
] as const;
export type OrderStatus = (typeof ORDER_STATUSES)[number];

export const RESERVATION_REASONS = [
  "STOCK_GONE",
  "PROCESSING_FAILED",
  "CANCELLED_BY_BUYER",
  "CANCELLED_BY_OPERATOR",
  "PAYMENT_EXPIRED",
  "REFUNDED",
] as const;
export type ReservationReason = (typeof RESERVATION_REASONS)[number];

interface StageRow {
  readonly rank: number;
  readonly status: ReservationStatus;
  readonly order: OrderStatus | null;
}

/** Ranks have gaps, so that a stage can be put between two without renumbering what clients hold. */
export const STAGES = {
  PENDING: { rank: 10, status: "PENDING", order: null },
  QUEUED: { rank: 20, status: "QUEUED", order: null },
  ORDERED: { rank: 30, status: "SUCCESS", order: "PENDING_PAYMENT" },
  PAID: { rank: 40, status: "SUCCESS", order: "PAID" },
  REFUND_PENDING: { rank: 50, status: "SUCCESS", order: "REFUND_PENDING" },
  SOLD_OUT: { rank: 90, status: "SOLD_OUT", order: null },
  FAILED: { rank: 90, status: "FAILED", order: null },
  CANCELLED: { rank: 90, status: "RELEASED", order: "CANCELLED" },
  EXPIRED: { rank: 90, status: "RELEASED", order: "EXPIRED" },
  REFUNDED: { rank: 90, status: "RELEASED", order: "REFUNDED" },
} as const satisfies Record<string, StageRow>;

export type Stage = keyof typeof STAGES;

export const UNDECIDED: ReadonlySet<Stage> = new Set<Stage>(["PENDING", "QUEUED"]);

export function isStage(text: string): text is Stage {
  return Object.hasOwn(STAGES, text);
}

const STAGE_OF_ORDER: Record<OrderStatus, Stage> = {
  PENDING_PAYMENT: "ORDERED",
  PAID: "PAID",
  CANCELLED: "CANCELLED",
  EXPIRED: "EXPIRED",
  REFUND_PENDING: "REFUND_PENDING",
  REFUNDED: "REFUNDED",
};

/** The stage of a journaled request as the database tells it: its outcome, and its order's status where it has one. */
export function stageOf(outcome: "ORDERED" | "SOLD_OUT" | "FAILED" | null, order: OrderStatus | null): Stage {
  if (order) return STAGE_OF_ORDER[order];
  if (outcome === "SOLD_OUT" || outcome === "FAILED") return outcome;
  return outcome === "ORDERED" ? "ORDERED" : "QUEUED";
}

/** What a buyer is waiting for is over: nothing further will be said of this request. PAID may yet be refunded, but nobody waits for that. */
export function isSettled(stage: Stage): boolean {
  return stage === "PAID" || STAGES[stage].rank === 90;
}

const REASON_TEXT: Record<ReservationReason, string> = {
  STOCK_GONE: "The last units were gone before your order could be written.",
  PROCESSING_FAILED: "Your order could not be written. Nothing was charged.",
  CANCELLED_BY_BUYER: "You cancelled this order.",
  CANCELLED_BY_OPERATOR: "The seller cancelled this order.",
  PAYMENT_EXPIRED: "The order was not paid in time.",
  REFUNDED: "The order was refunded.",
};

/** The reason in words for a buyer. */
export function reasonText(reason: ReservationReason): string {
  return REASON_TEXT[reason];
}
