import { setImmediate } from "node:timers/promises";
import { Redis } from "ioredis";
import { saleKeys } from "../../src/redis/keys.js";
import { atEndOfFile } from "./test-file.js";

/** A reservation as services make it that have no script: look first, then take. Oversells, which is what it is for. */
export interface ReadThenWrite {
  reserve(input: {
    saleId: string;
    itemId: string;
    buyerId: string;
    requestId: string;
  }): Promise<"QUEUED" | "SOLD_OUT">;
}

/**
 * The control of the tests about stock: the same keys as reserve.lua and the same answers, but each look and each write
 * a command of its own, over several connections as several processes have them.
 */
export async function connectReadThenWrite(redisUrl: string, connections = 8): Promise<ReadThenWrite> {
  const clients = Array.from({ length: connections }, () => new Redis(redisUrl, { lazyConnect: true }));
  atEndOfFile(() => {
    for (const client of clients) client.disconnect();
  });
  await Promise.all(clients.map((client) => client.connect()));
  let turn = 0;
  return {
    async reserve({ saleId, itemId, buyerId, requestId }) {
      const client = clients[turn++ % connections] as Redis;
      const keys = saleKeys(saleId);
      const [holder, remaining] = await Promise.all([
        client.hget(keys.holders, buyerId),
        client.hget(keys.stock, itemId),
      ]);
      if (holder !== null || Number(remaining) < 1) return "SOLD_OUT";
      await setImmediate();
      await client.hincrby(keys.stock, itemId, -1);
      await client.hset(keys.holders, buyerId, requestId);
      return "QUEUED";
    },
  };
}
