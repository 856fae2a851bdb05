/**
 * The worker of the straightforward build, and of round 3: one transaction a job. For comparison.
 *
 *   DATABASE_URL, REDIS_URL  the API's
 *   CONCURRENCY              jobs under way at once; by default 15: 8, 25 and 40 were no faster on two cores
 *   POOL                     connections to the database, by default as many
 */
import { type Job, UnrecoverableError, Worker } from "bullmq";
import { Redis } from "ioredis";
import { announceReady, endInOrder, setting, wholeNumber } from "../as-program.js";
import { connect } from "./database.js";
import { ORDER_QUEUE, type OrderJob } from "./order-queue.js";
import { itemOf, rememberSales, saleOf } from "./sales.js";
import { openStock } from "./stock-in-redis.js";
import { findHeld, writeOrder } from "./write-order.js";

const concurrency = wholeNumber("CONCURRENCY", 15);
const db = connect(setting("DATABASE_URL"), wholeNumber("POOL", concurrency));
const redis = new Redis(setting("REDIS_URL"), { maxRetriesPerRequest: null });
const stock = openStock(redis);
const findSale = rememberSales(db);

const worker = new Worker<OrderJob>(ORDER_QUEUE, ({ data }) => write(data), { connection: redis, concurrency });
worker.on("error", (error) => console.error(`worker: ${error.message}`));
worker.on("failed", (job, error) => {
  if (job?.finishedOn) void giveUp(job, error);
});

endInOrder(async () => {
  await worker.close();
  await redis.quit();
  await db.$disconnect();
});
await worker.waitUntilReady();
announceReady();

async function write(claim: OrderJob): Promise<void> {
  const sale = await saleOf(findSale, claim);
  const written = await writeOrder(db, sale, itemOf(sale, claim), claim);
  if (written === "ORDERED") return;
  const held = written === "HELD" ? await findHeld(db, claim) : null;
  // Its own order: the job has come twice.
  if (held?.requestId !== claim.requestId) throw new UnrecoverableError(`the database refused it: ${written}`);
}

async function giveUp(job: Job<OrderJob>, error: Error): Promise<void> {
  console.error(`a job has failed for good: ${error.message}`);
  await stock.giveBack(job.data).catch((failure: Error) => console.error(`its stock is not back: ${failure.message}`));
}
