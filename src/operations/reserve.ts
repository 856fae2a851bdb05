import { badUserInput, notFound, SluiceError, serviceUnavailable } from "../domain/errors.js";
import { isId } from "../domain/ids.js";
import { UNDECIDED } from "../domain/stages.js";
import { jitteredMs, SECOND } from "../domain/time.js";
import type { DependencyHealth } from "../lifecycle/dependency-health.js";
import { drilling, failpoint } from "../lifecycle/failpoints.js";
import { orWhenLate } from "../lifecycle/pause.js";
import type { LogRarely } from "../observability/logger.js";
import type { Metrics } from "../observability/metrics.js";
import { RedisUnavailableError } from "../redis/errors.js";
import type { RedisLink } from "../redis/link.js";
import { callReserve, type ReserveReply } from "../redis/reserve.js";
import { type AnswerStoredDeps, answerFromHolder, answerFromRow, answerWithoutRedis } from "./answer-stored.js";
import type { Journal, JournalOutcome } from "./journal.js";
import { type Accepted, type ReserveInput, type ReserveOutcome, reservationOf } from "./reserve-outcome.js";

export type { ReserveInput, ReserveOutcome };

export interface ReserveDeps extends AnswerStoredDeps {
  readonly redis: RedisLink;
  readonly journal: Journal;
  readonly databaseHealth: DependencyHealth;
  readonly rarely: LogRarely;
  readonly metrics: Metrics;
  /** Is told at once what Redis replied to what it was asked at `askedAt` (performance.now()). */
  readonly soldOutGate: { heard(input: ReserveInput, reply: ReserveReply, askedAt: number): void };
  readonly config: {
    readonly tuning: {
      readonly deadlines: { readonly requestMs: number; readonly journalMs: number; readonly redisCommandMs: number };
    };
  };
}

/**
 * Reserves stock for a buyer: one decision in Redis, made durable before it is called QUEUED.
 * Safe to repeat with the same input, whatever became of the answer before.
 *
 * @throws SluiceError BAD_USER_INPUT, NOT_FOUND (sale or item), SERVICE_UNAVAILABLE (nothing was decided, or it is not
 *   known: send the same request again)
 */
export async function reserve(deps: ReserveDeps, input: ReserveInput): Promise<ReserveOutcome> {
  const ended = deps.metrics.reserves.begin();
  try {
    const outcome = await answerInTime(deps, input);
    ended(input.saleId, outcome.kind);
    return outcome;
  } catch (error) {
    // Clients may send any id: only of an answer, or of what was seen before, is it known that the sale exists.
    const known = deps.metrics.reserves.knows(input.saleId) || deps.sales.knows(input.saleId);
    ended(known ? input.saleId : "", error instanceof SluiceError ? error.code.toLowerCase() : "error");
    throw error;
  }
}

async function answerInTime(deps: ReserveDeps, input: ReserveInput): Promise<ReserveOutcome> {
  if (!Number.isInteger(input.quantity) || input.quantity < 1) {
    throw badUserInput("quantity must be a whole number, 1 or more");
  }
  if (!isId(input.saleId)) throw notFound("There is no such sale.");
  if (!isId(input.itemId)) throw notFound("There is no such item in this sale.");
  const { requestMs } = deps.config.tuning.deadlines;
  const progress: Progress = { accepted: null };
  const deciding = askRedis(deps, input).then((reply) => answer(deps, input, reply, progress));
  return orWhenLate(deciding, requestMs, () => {
    // Redis has said yes: whoever asks again learns more, and the forwarder finishes it in any case.
    if (progress.accepted) return progress.accepted;
    throw serviceUnavailable("There was no answer in time. Send the same request again.");
  });
}

/** How far a request has come, for when its time is over. */
interface Progress {
  /** what can be said of it since Redis has accepted it */
  accepted: ReserveOutcome | null;
}

async function askRedis(deps: ReserveDeps, input: ReserveInput): Promise<ReserveReply> {
  if (drilling) await failpoint("reserve.before_script");
  const askedAt = performance.now();
  try {
    const reply = await callReserve(deps.redis, {
      ...input,
      notAfterMs: deps.redis.clock.now() + deps.config.tuning.deadlines.redisCommandMs,
      // With the database away nothing new could be made durable: refuse before stock is touched.
      accept: deps.databaseHealth.isUp() && deps.journal.hasRoom(),
    });
    deps.soldOutGate.heard(input, reply, askedAt);
    return reply;
  } catch (error) {
    if (!(error instanceof RedisUnavailableError)) throw error;
    throw serviceUnavailable("Reservations can't be taken right now. Send the same request again.", error);
  }
}

async function answer(
  deps: ReserveDeps,
  input: ReserveInput,
  reply: ReserveReply,
  progress: Progress,
): Promise<ReserveOutcome> {
  switch (reply.kind) {
    case "accepted":
      if (drilling) await failpoint("reserve.after_script");
      return makeDurable(deps, input, { ...reply, stage: "PENDING", reason: null }, progress);
    case "known":
      if (reply.stage === "PENDING") return makeDurable(deps, input, reply, progress);
      return {
        kind: UNDECIDED.has(reply.stage) ? "queued" : "decided",
        reservation: reservationOf(input, reply),
      };
    case "conflict":
      return { kind: "request_conflict" };
    case "held":
      return answerFromHolder(deps, input.saleId, reply.requestId);
    case "sold_out":
    case "ended":
      return { kind: reply.kind };
    case "insufficient":
      return { kind: "insufficient", remaining: reply.remaining };
    case "limit_exceeded":
      return { kind: "limit_exceeded", maxPerBuyer: reply.maxPerBuyer };
    case "not_started":
      return { kind: "not_started", retryAfterMs: Math.max(1, reply.opensAt.getTime() - reply.nowMs) };
    case "paused":
    case "busy":
      return { kind: reply.kind, retryAfterMs: jitteredMs(1 * SECOND, 3 * SECOND) };
    case "unknown_item":
      throw notFound("There is no such item in this sale.");
    case "refused":
    case "too_late":
      throw serviceUnavailable("Reservations can't be made durable right now. Send the same request again.");
    case "damaged":
      deps.rarely(
        "error",
        { saleId: input.saleId, requestId: input.requestId, key: reply.key },
        "a key of the sale is damaged",
      );
      if (reply.saleWide) await repair(deps, input.saleId);
      throw serviceUnavailable("Reservations can't be taken right now. Send the same request again.");
    case "not_loaded":
      return answerWithoutRedis(deps, input);
  }
}

/** Journals an accepted request: QUEUED once its row is committed, PENDING where that isn't known in time. */
async function makeDurable(
  deps: ReserveDeps,
  input: ReserveInput,
  accepted: Accepted,
  progress: Progress,
): Promise<ReserveOutcome> {
  const { epoch, seq, at } = accepted;
  const pending: ReserveOutcome = {
    kind: "pending",
    reservation: reservationOf(input, accepted),
    retryAfterMs: jitteredMs(1 * SECOND, 3 * SECOND),
  };
  progress.accepted = pending;
  // Repeats come however much waits already: what they ask for is in Redis, and the forwarder sees to it.
  if (!deps.journal.hasRoom()) return pending;
  const { requestId, buyerId, itemId, quantity, saleId } = input;
  const journaling = deps.journal.add(saleId, { requestId, buyerId, itemId, quantity, epoch, seq, acceptedAt: at });
  const outcome = await inTime(deps, input, journaling);
  switch (outcome.kind) {
    case "failed":
      deps.rarely("error", { saleId, requestId, err: outcome.error }, "accepted, but the database can't take it");
      return pending;
    case "unconfirmed":
      return pending;
    case "journaled":
      return { kind: "queued", reservation: reservationOf(input, { ...accepted, stage: "QUEUED" }) };
    case "refused":
      throw serviceUnavailable("The sale is being loaded. Send the same request again.");
    case "other": {
      const { row } = outcome;
      const same = row.buyerId === buyerId && row.itemId === itemId && row.quantity === quantity;
      return same ? answerFromRow(deps, input) : { kind: "request_conflict" };
    }
  }
}

async function inTime(
  deps: ReserveDeps,
  input: ReserveInput,
  journaling: Promise<JournalOutcome>,
): Promise<JournalOutcome | { kind: "unconfirmed" }> {
  const unconfirmed = { kind: "unconfirmed" } as const;
  try {
    return await orWhenLate(journaling, deps.config.tuning.deadlines.journalMs, () => unconfirmed);
  } catch (error) {
    // The forwarder finds out what became of it.
    const { saleId, requestId } = input;
    deps.rarely("warn", { saleId, requestId, err: error }, "accepted, but not journaled yet");
    return unconfirmed;
  }
}

/** A key that the whole sale needs is gone or of a wrong type: only a load brings it back. */
async function repair(deps: ReserveDeps, saleId: string): Promise<void> {
  const sale = await deps.sales.get(saleId).catch(() => null);
  if (sale) deps.loads.request(saleId, "damaged", sale.epoch);
}
