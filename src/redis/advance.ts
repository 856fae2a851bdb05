import { type ReservationReason, STAGES, type Stage, UNDECIDED } from "../domain/stages.js";
import { saleKeys } from "./keys.js";
import type { RedisLink } from "./link.js";
import { callScript } from "./scripts.js";

/** One request to be moved forward. */
export interface Advance {
  readonly requestId: string;
  readonly stage: Stage;
  readonly reason: ReservationReason | null;
  /** units to give back, 0 or more; only an event gives any, and it says its epoch */
  readonly units: number;
  /** the epoch that the event was stamped with; 0 where there is nothing to give back */
  readonly epoch: number;
}

export type AdvanceResult = "applied" | "stale" | "absorbed" | "later" | "unknown";

export type AdvanceReply =
  | { kind: "ok"; results: readonly AdvanceResult[] }
  | { kind: "not_loaded" }
  | { kind: "damaged"; key: string };

/** How many requests go into one call: some milliseconds of Redis at the most. */
const ADVANCE_AT_ONCE = 500;

/** Moves a request to a stage, giving nothing back. */
export function toStage(requestId: string, stage: Stage, reason: ReservationReason | null = null): Advance {
  return { requestId, stage, reason, units: 0, epoch: 0 };
}

/**
 * Runs advance.lua for requests of one sale; `results` has one entry for each of them, in their order.
 * Safe to repeat: only a higher rank changes anything.
 * @throws RedisUnavailableError
 */
export async function callAdvance(
  link: RedisLink,
  saleId: string,
  advances: readonly Advance[],
): Promise<AdvanceReply> {
  const results: AdvanceResult[] = [];
  for (let at = 0; at < advances.length; at += ADVANCE_AT_ONCE) {
    const reply = await callOnce(link, saleId, advances.slice(at, at + ADVANCE_AT_ONCE));
    if (reply.kind !== "ok") return reply;
    results.push(...reply.results);
  }
  return { kind: "ok", results };
}

async function callOnce(link: RedisLink, saleId: string, advances: readonly Advance[]): Promise<AdvanceReply> {
  const keys = saleKeys(saleId);
  const requestKeys = advances.map(({ requestId }) => keys.request(requestId));
  const args = advances.flatMap((advance) => {
    const { rank, status } = STAGES[advance.stage];
    const endsHold = status === "SOLD_OUT" || status === "FAILED" || status === "RELEASED";
    return [
      advance.requestId,
      advance.stage,
      rank,
      advance.reason ?? "",
      advance.units,
      advance.epoch,
      UNDECIDED.has(advance.stage) ? "0" : "1",
      endsHold ? "1" : "0",
    ];
  });
  const raw = await link.run((client, runId) =>
    callScript(
      client,
      "advance",
      [keys.sale, keys.stock, keys.holders, keys.pending, ...requestKeys],
      [runId, keys.events, ...args],
    ),
  );
  const [kind, detail] = raw as [string, unknown];
  if (kind === "OK") {
    return { kind: "ok", results: (detail as string[]).map((word) => word.toLowerCase() as AdvanceResult) };
  }
  return kind === "DAMAGED" ? { kind: "damaged", key: String(detail) } : { kind: "not_loaded" };
}
