import type { RedisLink } from "../redis/link.js";

/** The time of the clock that opens and closes sales: the Redis server's, as far as this process knows it. */
export function serverTime(deps: { readonly redis: Pick<RedisLink, "clock"> }): Date {
  return new Date(deps.redis.clock.now());
}
