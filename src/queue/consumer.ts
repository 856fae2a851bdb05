import { DelayedError, type Job, UnrecoverableError, Worker } from "bullmq";
import type { Redis } from "ioredis";
import { jitteredMs, SECOND } from "../domain/time.js";
import { orWhenLate } from "../lifecycle/pause.js";
import { queuePrefix } from "../redis/keys.js";
import { WRITE_ORDER } from "./jobs.js";

/** What became of a job's request. */
export type JobResult =
  | { kind: "done" }
  /** a dependency is away: again later, without using up an attempt */
  | { kind: "put_off"; why: string }
  /** a fault of this request: again after a backoff, five times in all */
  | { kind: "failed"; error: Error }
  /** no repeat can help */
  | { kind: "hopeless"; error: Error };

export interface ConsumerOptions {
  readonly saleId: string;
  /** must have maxRetriesPerRequest: null; a blocking connection of its own is made from it */
  readonly connection: Redis;
  readonly concurrency: number;
  readonly jobs: {
    /** how long a silent process keeps its jobs, in milliseconds */
    readonly lockMs: number;
    /** how often jobs of silent processes are looked for, in milliseconds */
    readonly stalledMs: number;
    /** how often a job may be taken over from a silent process before it fails */
    readonly takeovers: number;
  };
  handle(requestId: string): Promise<JobResult>;
  onError(error: Error): void;
}

/** Serves the queue of one sale. */
export interface OrderConsumer {
  /** Stops taking jobs until `resume`; those under way go on. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** Waits for the jobs under way, `deadlineMs` at the most; BullMQ's own close hangs while Redis is away. */
  close(deadlineMs: number): Promise<void>;
}

export function consumeOrders(options: ConsumerOptions): OrderConsumer {
  const worker = new Worker<unknown>(WRITE_ORDER.queue, (job, token) => runJob(options, job, token), {
    connection: options.connection,
    prefix: queuePrefix(options.saleId),
    concurrency: options.concurrency,
    lockDuration: options.jobs.lockMs,
    stalledInterval: options.jobs.stalledMs,
    maxStalledCount: options.jobs.takeovers,
    removeOnComplete: { count: 0 },
    skipVersionCheck: true,
  });
  worker.on("error", options.onError);

  return {
    pause: () => worker.pause(true),
    resume: async () => worker.resume(),
    async close(deadlineMs) {
      await orWhenLate(worker.close(), deadlineMs, () => orWhenLate(worker.close(true), SECOND / 2, () => {}));
    },
  };
}

async function runJob(options: ConsumerOptions, job: Job<unknown>, token: string | undefined): Promise<void> {
  const payload = WRITE_ORDER.payload.safeParse(job.data);
  if (!payload.success) throw new UnrecoverableError("The job can't be read.");
  if (payload.data.saleId !== options.saleId || payload.data.requestId !== job.id) {
    throw new UnrecoverableError("The job names another request than its own.");
  }
  const result = await options.handle(payload.data.requestId);
  switch (result.kind) {
    case "done":
      return;
    case "put_off":
      await job.moveToDelayed(Date.now() + jitteredMs(SECOND / 2, SECOND), token);
      throw new DelayedError(result.why);
    case "failed":
      throw result.error;
    case "hopeless":
      throw new UnrecoverableError(result.error.message);
  }
}
