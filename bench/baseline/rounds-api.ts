/**
 * The API of a flash sale as it is built first, then second, then third. For comparison.
 *
 *   ROUND         1: the database alone; 2: Redis decides, the database writes before the answer; 3: Redis decides, a job is added,
 *                 and straightforward-worker.ts writes the order later
 *   DATABASE_URL  with Sluice's tables; sales must exist and be OPEN before they are asked for
 *   REDIS_URL     from round 2 on; empty at the start
 *   POOL          connections to the database, by default 15
 *   JWT_SECRET, JWT_ISSUER, JWT_AUDIENCE, PORT  as Sluice's
 */
import { announceReady, closeServer, endInOrder, listen, setting, wholeNumber } from "../as-program.js";
import { connect } from "./database.js";
import { reserveInDatabase } from "./database-alone.js";
import { openQueue } from "./order-queue.js";
import { reserveInRedisThenWrite } from "./redis-then-database.js";
import { reserveInRedisThenQueue } from "./redis-then-queue.js";
import type { Reserve } from "./reservations.js";
import { rememberSales } from "./sales.js";
import { createApi } from "./serve.js";
import { connectRedis, openStock } from "./stock-in-redis.js";

const round = setting("ROUND");
const db = connect(setting("DATABASE_URL"), wholeNumber("POOL", 15));
const closing: (() => Promise<unknown>)[] = [() => db.$disconnect()];

const server = await createApi(openRound());
closing.unshift(() => closeServer(server));
endInOrder(async () => {
  for (const close of closing) await close();
});
announceReady(await listen(server));

function openRound(): Reserve {
  if (round === "1") return reserveInDatabase(db, rememberSales(db));
  if (round !== "2" && round !== "3") throw new Error("ROUND must be 1, 2 or 3");
  const redis = connectRedis(setting("REDIS_URL"));
  const stock = openStock(redis);
  const findSale = rememberSales(db, stock.fill);
  closing.unshift(() => redis.quit());
  if (round === "2") return reserveInRedisThenWrite(db, stock, findSale);
  // As one finds it in the first example: a job that fails has failed.
  const queue = openQueue(redis, {});
  closing.unshift(() => queue.close());
  return reserveInRedisThenQueue(db, stock, findSale, queue.enqueue);
}
