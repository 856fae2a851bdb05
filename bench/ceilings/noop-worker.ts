/**
 * What a BullMQ worker can do: takes jobs and does nothing with them. A ceiling for whoever takes jobs one by one.
 *
 *   REDIS_URL
 *   QUEUE        the queue's name, by default noop, under BullMQ's own prefix
 *   CONCURRENCY  jobs under way at once, by default 512
 */
import { Worker } from "bullmq";
import { Redis } from "ioredis";
import { announceReady, endInOrder, setting, wholeNumber } from "../as-program.js";

const redis = new Redis(setting("REDIS_URL"), { maxRetriesPerRequest: null });
const worker = new Worker(setting("QUEUE", "noop"), async () => {}, {
  connection: redis,
  concurrency: wholeNumber("CONCURRENCY", 512),
  removeOnComplete: { count: 0 },
});
worker.on("error", (error) => console.error(`worker: ${error.message}`));

endInOrder(async () => {
  await worker.close();
  await redis.quit();
});
await worker.waitUntilReady();
announceReady();
