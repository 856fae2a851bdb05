import { saleKeys } from "./keys.js";
import type { RedisLink } from "./link.js";
import { readPending } from "./read-sale.js";

/** Requests of one reading: some milliseconds of either side. */
const READ_AT_ONCE = 500;

/**
 * The buyers of an item whose requests are accepted and not decided, some at a time, the oldest first. A request that is
 * decided meanwhile may be left out: it has its row in the database.
 * @throws RedisUnavailableError, or an Error where a request can't be read: then nobody can say who is missing
 */
export async function* readPendingBuyers(link: RedisLink, saleId: string, itemId: string): AsyncGenerator<string[]> {
  const keys = saleKeys(saleId);
  let afterSeq = 0;
  for (;;) {
    const pending = await readPending(link, saleId, afterSeq, READ_AT_ONCE);
    if (pending.length === 0) return;
    const requests = await link.run(async (client) => {
      const pipeline = client.pipeline();
      for (const { requestId } of pending) pipeline.hmget(keys.request(requestId), "buyer", "item");
      return (await pipeline.exec()) ?? [];
    });
    yield requests.flatMap(([error, fields]) => {
      const [buyerId, item] = (fields ?? []) as (string | null)[];
      if (error || !buyerId || !item) throw new Error("a pending request can't be read", { cause: error });
      return item === itemId ? [buyerId] : [];
    });
    afterSeq = pending.at(-1)?.seq ?? afterSeq;
  }
}
