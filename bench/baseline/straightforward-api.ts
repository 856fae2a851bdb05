/**
 * The API of the straightforward build: GraphQL Yoga and Pothos, a Redis script that decides, a BullMQ job for each accepted
 * request, with retries. Written to be as fast as that can be. For comparison; straightforward-worker.ts belongs to it.
 *
 *   DATABASE_URL  with Sluice's tables; sales must exist and be OPEN before they are asked for
 *   REDIS_URL     empty at the start
 *   POOL          connections to the database, which is asked for sales and for repeats only; by default 5
 *   BACKOFF_MS    before a job's second attempt, then doubled up to the fifth; by default 1000
 *   JWT_SECRET, JWT_ISSUER, JWT_AUDIENCE, PORT  as Sluice's
 */
import { announceReady, closeServer, endInOrder, listen, setting, wholeNumber } from "../as-program.js";
import { connect } from "./database.js";
import { openQueue } from "./order-queue.js";
import { reserveInRedisThenQueue } from "./redis-then-queue.js";
import { rememberSales } from "./sales.js";
import { createApi } from "./serve.js";
import { connectRedis, openStock } from "./stock-in-redis.js";

const db = connect(setting("DATABASE_URL"), wholeNumber("POOL", 5));
const redis = connectRedis(setting("REDIS_URL"));
const stock = openStock(redis);
const queue = openQueue(redis, {
  attempts: 5,
  backoff: { type: "exponential", delay: wholeNumber("BACKOFF_MS", 1_000) },
});
const server = await createApi(reserveInRedisThenQueue(db, stock, rememberSales(db, stock.fill), queue.enqueue));

endInOrder(async () => {
  await closeServer(server);
  await queue.close();
  await redis.quit();
  await db.$disconnect();
});
announceReady(await listen(server));
