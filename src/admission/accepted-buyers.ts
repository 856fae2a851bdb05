import { setImmediate } from "node:timers/promises";
import { BloomFilter } from "bloomfilter";
import { readJournaledBuyers } from "../db/accepted-buyers.js";
import type { Database } from "../db/client.js";
import type { RedisLink } from "../redis/link.js";
import { readPendingBuyers } from "../redis/read-accepted.js";
import type { AcceptedBuyers } from "./item-gate.js";

export interface ReadAcceptedDeps {
  readonly redis: RedisLink;
  readonly reads: Database;
}

/** One stranger in a hundred looks like a buyer when as many buyers are in it as it was made for: 9.6 bits each, 7 hashes. */
const BITS_PER_BUYER = 9.6;
const HASHES = 7;

/**
 * All buyers who were ever accepted for an item, or null where those are more than `atMost` requests.
 *
 * Whoever was accepted before this is called is in it. A request is pending until it is decided, and what is decided has a
 * row: so pending first and the rows afterwards, never the other way round. As a Bloom filter, 120 kB for 100,000.
 *
 * @throws RedisUnavailableError, a database error, or an Error where a pending request can't be read
 */
export async function readAcceptedBuyers(
  deps: ReadAcceptedDeps,
  item: { readonly saleId: string; readonly itemId: string },
  atMost: number,
): Promise<AcceptedBuyers | null> {
  const buyers = new BloomFilter(Math.ceil(atMost * BITS_PER_BUYER), HASHES);
  const { saleId, itemId } = item;
  for (const pages of [
    () => readPendingBuyers(deps.redis, saleId, itemId),
    () => readJournaledBuyers(deps.reads, saleId, itemId),
  ]) {
    let count = 0;
    for await (const page of pages()) {
      count += page.length;
      if (count > atMost) return null;
      for (const buyerId of page) buyers.add(buyerId);
      // A page takes up to two milliseconds: those who wait for an answer come in between.
      await setImmediate();
    }
  }
  return buyers;
}
