import type { Reservation } from "../domain/model.js";
import { type ReservationReason, type Stage, UNDECIDED } from "../domain/stages.js";

export interface ReserveInput {
  readonly buyerId: string;
  readonly saleId: string;
  readonly itemId: string;
  /** 1 or more */
  readonly quantity: number;
  /** lower-case UUID, made once for one intention to buy and sent again on every retry */
  readonly requestId: string;
}

/** What a request came to. Expected answers are values; what can't be decided now is thrown. */
export type ReserveOutcome =
  | {
      kind: "queued" | "pending" | "decided" | "already_reserved";
      reservation: Reservation;
      retryAfterMs?: number;
    }
  | { kind: "sold_out" }
  | { kind: "insufficient"; remaining: number }
  | { kind: "limit_exceeded"; maxPerBuyer: number }
  | { kind: "not_started"; retryAfterMs: number }
  | { kind: "ended" }
  | { kind: "paused"; retryAfterMs: number }
  | { kind: "request_conflict" }
  | { kind: "busy"; retryAfterMs: number };

/** What Redis said of a request that it has accepted. */
export interface Accepted {
  readonly epoch: number;
  readonly seq: number;
  readonly stage: Stage;
  readonly reason: ReservationReason | null;
  readonly at: Date;
  readonly ahead: number | null;
}

/** The request as its buyer sees it. */
export function reservationOf(input: ReserveInput, state: Accepted): Reservation {
  const { saleId, requestId, buyerId, itemId, quantity } = input;
  return {
    saleId,
    requestId,
    buyerId,
    itemId,
    quantity,
    stage: state.stage,
    reason: state.reason,
    ahead: UNDECIDED.has(state.stage) ? state.ahead : null,
    createdAt: state.at,
    updatedAt: state.at,
    // Undecided requests have no order; of others it is read where it is asked for.
    ...(UNDECIDED.has(state.stage) && { order: null }),
  };
}
