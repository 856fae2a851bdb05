import { saleKeys } from "./keys.js";
import type { RedisLink } from "./link.js";

/** A sale's stock as Redis holds it, damaged values included; for comparing, not for showing. */
export interface StockInRedis {
  /** whether it is ready on this very server */
  readonly loaded: boolean;
  readonly epoch: number;
  /** the number of its latest change: two readings with the same one saw the same */
  readonly seq: number;
  /** itemId → units, in whatever text stands there */
  readonly units: Readonly<Record<string, string>>;
  /** accepted requests that are not decided, as far as Redis knows */
  readonly pending: number;
}

/** Reads a sale's stock, all of one moment. @throws RedisUnavailableError, or a ReplyError where a key is of a wrong type */
export async function readStock(link: RedisLink, saleId: string): Promise<StockInRedis> {
  const keys = saleKeys(saleId);
  return link.run(async (client, runId) => {
    const replies = await client
      .multi()
      .hmget(keys.sale, "phase", "runId", "epoch", "seq")
      .hgetall(keys.stock)
      .zcard(keys.pending)
      .exec();
    const [sale, units, members] = (replies ?? []).map(([error, value]) => {
      if (error) throw error;
      return value;
    }) as [(string | null)[], Record<string, string>, number];
    const [phase, loadedOn, epoch, seq] = sale;
    return {
      loaded: phase === "READY" && loadedOn === runId,
      epoch: Number(epoch ?? 0),
      seq: Number(seq ?? 0),
      units,
      // The sentinel is a member, and no request.
      pending: Math.max(0, members - 1),
    };
  });
}
