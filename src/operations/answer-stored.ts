import { notFound, serviceUnavailable } from "../domain/errors.js";
import type { Reservation } from "../domain/model.js";
import { UNDECIDED } from "../domain/stages.js";
import { jitteredMs, REMEMBERED_AFTER_CLOSE_MS, SECOND } from "../domain/time.js";
import type { Loads } from "./loads.js";
import { type ReadReservationsDeps, readReservations } from "./read-reservations.js";
import type { ReserveInput, ReserveOutcome } from "./reserve-outcome.js";
import type { SaleCache } from "./sale-cache.js";

/** What reserve needs to answer from what is stored, where Redis alone can't. */
export interface AnswerStoredDeps extends ReadReservationsDeps {
  readonly sales: SaleCache;
  readonly loads: Loads;
}

/** The buyer's live reservation, made by another request. @throws SluiceError SERVICE_UNAVAILABLE */
export async function answerFromHolder(
  deps: AnswerStoredDeps,
  saleId: string,
  requestId: string,
): Promise<ReserveOutcome> {
  const [reservation] = await readReservations(deps, [{ saleId, requestId }]);
  if (!reservation) throw serviceUnavailable("Your reservation can't be read right now. Send the same request again.");
  return { kind: "already_reserved", reservation };
}

/** The state of a request that the database knows. @throws SluiceError SERVICE_UNAVAILABLE */
export async function answerFromRow(deps: AnswerStoredDeps, input: ReserveInput): Promise<ReserveOutcome> {
  const [reservation] = await readReservations(deps, [input]);
  if (!reservation) throw serviceUnavailable("Your reservation can't be read right now. Send the same request again.");
  return answerAs(input, reservation);
}

function answerAs(input: ReserveInput, reservation: Reservation): ReserveOutcome {
  const { buyerId, itemId, quantity, stage } = reservation;
  if (buyerId !== input.buyerId || itemId !== input.itemId || quantity !== input.quantity) {
    return { kind: "request_conflict" };
  }
  return { kind: UNDECIDED.has(stage) ? "queued" : "decided", reservation };
}

/** What can be said of a sale that isn't in Redis; one that should be is loaded meanwhile. */
export async function answerWithoutRedis(deps: AnswerStoredDeps, input: ReserveInput): Promise<ReserveOutcome> {
  const sale = await deps.sales.get(input.saleId).catch((error: unknown) => {
    throw serviceUnavailable("The sale can't be read right now. Send the same request again.", error);
  });
  if (!sale) throw notFound("There is no such sale.");
  if (!sale.items.some((item) => item.id === input.itemId)) throw notFound("There is no such item in this sale.");
  const now = deps.redis.clock.now();
  if (sale.state === "DRAFT") {
    const untilOpen = sale.opensAt.getTime() - now;
    return { kind: "not_started", retryAfterMs: untilOpen > 0 ? untilOpen : jitteredMs(1 * SECOND, 3 * SECOND) };
  }
  if (now > sale.closesAt.getTime() + REMEMBERED_AFTER_CLOSE_MS) {
    const [known] = await readReservations(deps, [input]);
    return known ? answerAs(input, known) : { kind: "ended" };
  }
  deps.loads.request(sale.id, "not_loaded");
  throw serviceUnavailable("The sale is being loaded. Send the same request again.");
}
