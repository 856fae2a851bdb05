import { STAGES } from "../domain/stages.js";
import { saleKeys } from "./keys.js";
import type { RedisLink } from "./link.js";
import { callScript } from "./scripts.js";

export type ParkReply = { kind: "ok"; changed: number } | { kind: "not_loaded" } | { kind: "damaged"; key: string };

/** How many requests go into one call: a millisecond or two of Redis. */
const PARK_AT_ONCE = 500;

/**
 * Takes undecided requests of a sale out of the line (`out`), or puts them back where they stood (`in`). Safe to repeat; what
 * is decided meanwhile is left alone. @throws RedisUnavailableError
 */
export async function callPark(
  link: RedisLink,
  saleId: string,
  requestIds: readonly string[],
  where: "out" | "in",
): Promise<ParkReply> {
  const keys = saleKeys(saleId);
  let changed = 0;
  for (let at = 0; at < requestIds.length; at += PARK_AT_ONCE) {
    const some = requestIds.slice(at, at + PARK_AT_ONCE);
    const raw = await link.run((client, runId) =>
      callScript(
        client,
        "park",
        [keys.sale, keys.pending, ...some.map((requestId) => keys.request(requestId))],
        [runId, where === "in" ? "1" : "0", STAGES.QUEUED.rank, ...some],
      ),
    );
    const [kind, detail] = raw as [string, unknown];
    if (kind === "DAMAGED") return { kind: "damaged", key: String(detail) };
    if (kind !== "OK") return { kind: "not_loaded" };
    changed += Number(detail);
  }
  return { kind: "ok", changed };
}
