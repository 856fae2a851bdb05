/** What the clients heard: their side of the story, which proves nothing and is kept apart from the verdict. */
import type { Buyer } from "./crowd.js";
import type { ReserveReply } from "./sockets.js";
import type { Report } from "./till.js";

/** How the visit of a buyer ended, as the buyer knows it. */
export type Ending = "reserved" | "sold_out" | "refused" | "left" | "unanswered";

/** How a reservation ended, as its buyer knows it: `missed` is who wanted to pay or to give back, and came too late. */
export type Settled = "paid" | "cancelled" | "left_unpaid" | "too_late" | "missed" | "unanswered";

/** A payment that the provider has reported, and what it was told each time that it was told something. */
export interface ReportedPayment extends Report {
  readonly told: readonly string[];
}

/** Those who had been refused and came again, and what they got. */
export interface SecondWave {
  asked: number;
  reserved: number;
  unanswered: number;
  /** all that they have sent */
  readonly requestIds: string[];
}

export interface Heard {
  /** by status, as often as it was given */
  readonly answers: Record<string, number>;
  /** by code of a GraphQL error, or by what the connection failed with */
  readonly errors: Record<string, number>;
  readonly latenciesMs: number[];
  readonly endings: Record<Ending, number>;
  /** requests that some client was told are durable: QUEUED, or DECIDED on a repeat */
  readonly acknowledged: Map<string, Buyer>;
  hungUp: number;
  /** who was told that there is nothing left, and would still like to have one */
  readonly wanting: Buyer[];
  readonly secondWave: SecondWave;
  readonly settled: Record<Settled, number>;
  /** by paymentRef: all the money that was received */
  readonly payments: Map<string, ReportedPayment>;
  /** by outcome, as often as it was given */
  readonly paymentAnswers: Record<string, number>;
  /** payments by the way in which each was reported first */
  readonly paidBy: Record<string, number>;
  /** of those who follow: how many were told of their order, and how many heard nothing of a reservation they have */
  followed: { told: number; untold: number };
  /** the first wave alone: the second one waits for what comes back */
  storm: { readonly requests: number; readonly seconds: number };
}

export function hearNothing(): Heard {
  return {
    answers: {},
    errors: {},
    latenciesMs: [],
    endings: { reserved: 0, sold_out: 0, refused: 0, left: 0, unanswered: 0 },
    acknowledged: new Map(),
    hungUp: 0,
    wanting: [],
    secondWave: { asked: 0, reserved: 0, unanswered: 0, requestIds: [] },
    settled: { paid: 0, cancelled: 0, left_unpaid: 0, too_late: 0, missed: 0, unanswered: 0 },
    payments: new Map(),
    paymentAnswers: {},
    paidBy: {},
    followed: { told: 0, untold: 0 },
    storm: { requests: 0, seconds: 0 },
  };
}

/** Notes one reply to one request of a buyer. */
export function hear(heard: Heard, buyer: Buyer, requestId: string, reply: ReserveReply): void {
  if (reply.kind !== "answered") {
    if (reply.kind === "hung_up") heard.hungUp += 1;
    else add(heard.errors, reply.why);
    return;
  }
  heard.latenciesMs.push(reply.ms);
  const error = reply.body.errors?.[0];
  const status = reply.body.data?.reserve.status;
  if (error || !status) {
    add(heard.errors, error?.extensions?.code ?? "no data");
    return;
  }
  add(heard.answers, status);
  if (status === "QUEUED" || status === "DECIDED") heard.acknowledged.set(requestId, buyer);
}

/** The part of the latencies that `share` of them are not above, in milliseconds. */
export function percentile(latenciesMs: readonly number[], share: number): number {
  const sorted = [...latenciesMs].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? 0;
}

/** One more of that name. */
export function add(counts: Record<string, number>, name: string): void {
  counts[name] = (counts[name] ?? 0) + 1;
}

/** How fast the first wave was answered. */
export function pace({ storm: { requests, seconds } }: Heard) {
  return { requests, seconds, perSecond: requests / Math.max(0.001, seconds) };
}
