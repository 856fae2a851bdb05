/** What all contenders are asked, and what they answer: in the words of Sluice's own API. */

/** One intention of a buyer to buy. */
export interface Claim {
  readonly saleId: string;
  readonly itemId: string;
  readonly quantity: number;
  readonly requestId: string;
  readonly buyerId: string;
}

export interface Reservation {
  readonly requestId: string;
  readonly saleId: string;
  readonly itemId: string;
  readonly quantity: number;
  readonly status: "PENDING" | "QUEUED" | "SUCCESS";
}

/** What one call of reserve came to. */
export type Outcome =
  | { readonly status: "QUEUED" | "PENDING" | "DECIDED" | "ALREADY_RESERVED"; readonly reservation: Reservation }
  | { readonly status: Refusal };

export const REFUSALS = [
  "SOLD_OUT",
  "INSUFFICIENT",
  "LIMIT_EXCEEDED",
  "NOT_STARTED",
  "PAUSED",
  "ENDED",
  "REQUEST_CONFLICT",
] as const;
export type Refusal = (typeof REFUSALS)[number];

/** @throws GraphQLError where there is no such sale or item; any other error is an outage */
export type Reserve = (claim: Claim) => Promise<Outcome>;

/**
 * The answer to a request whose buyer has a reservation already: made by this request, by another one, or by this one for
 * something else.
 */
export function answerHeld(claim: Claim, held: Reservation): Outcome {
  if (held.requestId !== claim.requestId) return { status: "ALREADY_RESERVED", reservation: held };
  if (held.itemId !== claim.itemId || held.quantity !== claim.quantity) return { status: "REQUEST_CONFLICT" };
  return { status: held.status === "SUCCESS" ? "DECIDED" : held.status, reservation: held };
}

/** A claim as a reservation that has come so far. */
export function reservationOf(claim: Omit<Claim, "buyerId">, status: Reservation["status"]): Reservation {
  const { requestId, saleId, itemId, quantity } = claim;
  return { requestId, saleId, itemId, quantity, status };
}
