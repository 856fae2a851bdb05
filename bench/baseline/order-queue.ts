import { type JobsOptions, Queue } from "bullmq";
import type { Redis } from "ioredis";
import type { Claim } from "./reservations.js";

/** The one queue for the orders of all sales, under BullMQ's own prefix. */
export const ORDER_QUEUE = "orders";

/** A job carries the claim as it is: nothing else knows of it until the order is written. */
export type OrderJob = Claim;

/** Adds one job a claim; adding one again whose job is still known does nothing. */
export type Enqueue = (claim: Claim) => Promise<void>;

/** @param options of every job, for example how often it is tried */
export function openQueue(connection: Redis, options: JobsOptions): { enqueue: Enqueue; close(): Promise<void> } {
  const queue = new Queue<OrderJob>(ORDER_QUEUE, {
    connection,
    defaultJobOptions: { removeOnComplete: true, ...options },
  });
  queue.on("error", (error) => console.error(`queue: ${error.message}`));
  return {
    async enqueue(claim) {
      await queue.add("write-order", claim, { jobId: `${claim.saleId}.${claim.requestId}` });
    },
    close: () => queue.close(),
  };
}
