import { isStage, type ReservationReason, STAGES, type Stage } from "../domain/stages.js";
import { saleKeys } from "./keys.js";
import type { RedisLink } from "./link.js";
import { callScript, type ScriptReply } from "./scripts.js";

export interface ReserveCall {
  readonly saleId: string;
  readonly requestId: string;
  readonly buyerId: string;
  readonly itemId: string;
  readonly quantity: number;
  /** deadline in milliseconds of Redis time: later than that nothing is accepted */
  readonly notAfterMs: number;
  /** false while new requests can't be made durable; repeats are answered all the same */
  readonly accept: boolean;
}

/** What reserve.lua answered. Whatever has no more to say than its kind is a refusal that wrote nothing. */
export type ReserveReply =
  | { kind: "accepted"; epoch: number; seq: number; ahead: number; generation: number; at: Date }
  | {
      kind: "known";
      epoch: number;
      seq: number;
      stage: Stage;
      reason: ReservationReason | null;
      at: Date;
      ahead: number | null;
    }
  | { kind: "damaged"; key: string; saleWide: boolean }
  | { kind: "not_started"; opensAt: Date; nowMs: number }
  | { kind: "held"; requestId: string }
  | { kind: "limit_exceeded"; maxPerBuyer: number }
  | { kind: "sold_out"; epoch: number; generation: number }
  | { kind: "insufficient"; remaining: number }
  | { kind: "conflict" | "not_loaded" | "unknown_item" | "paused" | "ended" | "busy" | "refused" | "too_late" };

/**
 * Runs reserve.lua. Safe to send again with the same requestId, whatever became of the reply.
 * @throws RedisUnavailableError when it is not known whether the script ran.
 */
export async function callReserve(link: RedisLink, call: ReserveCall): Promise<ReserveReply> {
  const keys = saleKeys(call.saleId);
  const raw = await link.run((client, runId) =>
    callScript(
      client,
      "reserve",
      [keys.sale, keys.stock, keys.holders, keys.pending, keys.request(call.requestId)],
      [
        runId,
        call.requestId,
        call.buyerId,
        call.itemId,
        call.quantity,
        Math.floor(call.notAfterMs),
        call.accept ? "1" : "0",
        "PENDING",
        STAGES.PENDING.rank,
      ],
    ),
  );
  const [kind, now, ...rest] = raw as [ScriptReply<"reserve">, string, ...(string | number)[]];
  link.clock.observe(Number(now));
  return parseReply(kind, Number(now), rest, keys.request(call.requestId));
}

function parseReply(
  kind: ScriptReply<"reserve">,
  nowMs: number,
  rest: readonly (string | number)[],
  requestKey: string,
): ReserveReply {
  const number = (at: number) => Number(rest[at]);
  switch (kind) {
    case "ACCEPTED":
      return {
        kind: "accepted",
        epoch: number(0),
        seq: number(1),
        ahead: number(2),
        generation: number(3),
        at: new Date(nowMs),
      };
    case "KNOWN": {
      const stage = String(rest[2]);
      if (!isStage(stage)) return { kind: "damaged", key: requestKey, saleWide: true };
      const reason = rest[3] ? (String(rest[3]) as ReservationReason) : null;
      const ahead = number(5) < 0 ? null : number(5);
      return { kind: "known", epoch: number(0), seq: number(1), stage, reason, at: new Date(number(4)), ahead };
    }
    case "DAMAGED":
      return { kind: "damaged", key: String(rest[0]), saleWide: rest[1] === "sale" };
    case "NOT_STARTED":
      return { kind: "not_started", opensAt: new Date(number(0)), nowMs };
    case "HELD":
      return { kind: "held", requestId: String(rest[0]) };
    case "LIMIT_EXCEEDED":
      return { kind: "limit_exceeded", maxPerBuyer: number(0) };
    case "SOLD_OUT":
      return { kind: "sold_out", epoch: number(0), generation: number(1) };
    case "INSUFFICIENT":
      return { kind: "insufficient", remaining: number(0) };
    case "CONFLICT":
      return { kind: "conflict" };
    case "NOT_LOADED":
      return { kind: "not_loaded" };
    case "UNKNOWN_ITEM":
      return { kind: "unknown_item" };
    case "PAUSED":
      return { kind: "paused" };
    case "ENDED":
      return { kind: "ended" };
    case "BUSY":
      return { kind: "busy" };
    case "REFUSED":
      return { kind: "refused" };
    case "TOO_LATE":
      return { kind: "too_late" };
  }
}
