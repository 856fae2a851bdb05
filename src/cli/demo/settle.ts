/** What becomes of a reservation when its order is there: most buyers pay, some give it back, some forget it. */
import { randomUUID } from "node:crypto";
import { jitteredMs, SECOND } from "../../domain/time.js";
import { pause } from "../../lifecycle/pause.js";
import type { Buyer } from "./crowd.js";
import { add, type Heard } from "./heard.js";
import type { Held, Report, Till, Way } from "./till.js";

export type Manner = "pays" | "cancels" | "abandons" | "pays_too_late";

export interface Settling {
  readonly till: Till;
  readonly heard: Heard;
  readonly saleId: string;
  /** how long an unpaid order keeps its units */
  readonly windowSeconds: number;
  /** aborted when the first wave is through */
  readonly calm: AbortSignal;
  /** ends all waiting: the time is over */
  readonly over: AbortSignal;
}

/** Somebody who holds a reservation, in the order in which they got theirs. */
export interface Winner {
  readonly buyer: Buyer;
  readonly requestId: string;
  readonly nth: number;
}

/** Of twenty: fourteen pay, three cancel, two forget it, and one pays when it is too late. */
const OF_TWENTY: readonly Manner[] = [
  ...Array<Manner>(14).fill("pays"),
  ...Array<Manner>(3).fill("cancels"),
  ...Array<Manner>(2).fill("abandons"),
  "pays_too_late",
];
const LOOK_AT_MOST_MS = 1 * SECOND;

/** How a winner behaves. Whoever gets what somebody else has left pays for it: once is enough for every unit. */
export function mannerOf({ nth }: Winner, units: number): Manner {
  // 7 and 20 have no common divisor: each manner comes at its rate, and never all of a kind in a row.
  return nth < units ? (OF_TWENTY[(nth * 7) % 20] ?? "pays") : "pays";
}

/** Sees a reservation through to its end, as far as its buyer cares. */
export async function settle(scene: Settling, winner: Winner, manner: Manner): Promise<void> {
  const { heard, till } = scene;
  if (manner === "abandons") {
    heard.settled.left_unpaid += 1;
    return;
  }
  const held = await waitFor(scene, winner, ({ order, status }) => order !== null || isOver(status));
  if (!held?.order) {
    heard.settled[held ? "missed" : "unanswered"] += 1;
    return;
  }
  const { id: orderId, totalMinor } = held.order;
  if (manner === "cancels") {
    // When it has become calm, so that it is the second wave that gets it; in any case while there is time.
    await pause(scene.windowSeconds * 0.7 * SECOND, AbortSignal.any([scene.calm, scene.over]));
    const status = await till.cancel(winner.buyer.token, orderId);
    // CONFLICT: its time was over a moment before.
    heard.settled[status === "CANCELLED" ? "cancelled" : status === null ? "unanswered" : "missed"] += 1;
    return;
  }
  if (manner === "pays_too_late") await waitFor(scene, winner, ({ status }) => isOver(status));
  else if (isOver(held.status)) {
    heard.settled.missed += 1;
    return;
  }
  const report = { orderId, paymentRef: `demo-${randomUUID()}`, amountMinor: totalMinor };
  const outcome = await pay(scene, report, winner.nth);
  if (outcome === null) heard.settled.unanswered += 1;
  else if (outcome === "PAID" || outcome === "ALREADY_PAID") heard.settled.paid += 1;
  else heard.settled[manner === "pays_too_late" ? "too_late" : "missed"] += 1;
}

/** Reports a payment, by turns in each way; every third one twice, the second time in the other way. */
async function pay({ till, heard }: Settling, report: Report, nth: number): Promise<string | null> {
  const way = (at: number): Way => till.ways[at % till.ways.length] ?? "mutation";
  const noted = { ...report, told: [] as string[] };
  heard.payments.set(report.paymentRef, noted);
  const send = async (by: Way) => {
    const word = await till.report(by, report);
    if (word === null) return null;
    noted.told.push(word);
    add(heard.paymentAnswers, word);
    return word;
  };
  add(heard.paidBy, way(nth));
  const outcome = await send(way(nth));
  if (nth % 3 === 0) await send(way(nth + 1));
  return outcome;
}

/** Looks until it is so; null where the time is over before. */
async function waitFor(
  { till, saleId, over }: Settling,
  { buyer, requestId }: Winner,
  isSo: (held: Held) => boolean,
): Promise<Held | null> {
  for (let waitMs = 0.2 * SECOND; !over.aborted; waitMs = Math.min(LOOK_AT_MOST_MS, waitMs * 1.5)) {
    await pause(jitteredMs(waitMs, waitMs * 1.5), over);
    const held = await till.look(buyer.token, saleId, requestId);
    if (held && isSo(held)) return held;
  }
  return null;
}

/** RELEASED, or no order ever came of it. */
function isOver(status: string): boolean {
  return status === "RELEASED" || status === "FAILED" || status === "SOLD_OUT";
}
