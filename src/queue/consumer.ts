import { inspect } from "node:util";
import { DelayedError, type Job, type JobJson, UnrecoverableError, Worker } from "bullmq";
import type { Redis } from "ioredis";
import { jitteredMs, SECOND } from "../domain/time.js";
import { drilling, failpoint } from "../lifecycle/failpoints.js";
import { orWhenLate } from "../lifecycle/pause.js";
import { queuePrefix } from "../redis/keys.js";
import { failureOf, type JobFailure, MISNAMED, UNREADABLE } from "./job-failure.js";
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
  /** A job will not be run again: its attempts are used up, or no repeat can help. Best effort; the forwarder is behind it. */
  onDead(jobId: string, failure: JobFailure): void;
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
  const worker = new OrderWorker(WRITE_ORDER.queue, (job, token) => runJob(options, job, token), {
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
  worker.on("failed", (job) => {
    // Of a job that BullMQ took away from us it says so without one.
    if (!job?.id || !job.finishedOn) return;
    options.onDead(job.id, failureOf(job));
  });

  return {
    pause: () => worker.pause(true),
    resume: async () => worker.resume(),
    async close(deadlineMs) {
      await orWhenLate(worker.close(), deadlineMs, () => orWhenLate(worker.close(true), SECOND / 2, () => {}));
    },
  };
}

/**
 * BullMQ throws at a job whose data is no JSON before it hands it out: it fetched it again for ever, also past its own limit
 * of stalls. Handed out as one without a payload it fails like any other that can't be read.
 */
class OrderWorker extends Worker<unknown> {
  protected override createJob(stored: JobJson, jobId: string): Job<unknown> {
    try {
      return super.createJob(stored, jobId);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      return super.createJob({ ...stored, data: "null" }, jobId);
    }
  }
}

async function runJob(options: ConsumerOptions, job: Job<unknown>, token: string | undefined): Promise<void> {
  const payload = WRITE_ORDER.payload.safeParse(job.data);
  if (!payload.success) throw new UnrecoverableError(UNREADABLE);
  if (payload.data.saleId !== options.saleId || payload.data.requestId !== job.id) {
    throw new UnrecoverableError(MISNAMED);
  }
  const result = await options.handle(payload.data.requestId).catch((thrown: unknown) => {
    throw asError(thrown);
  });
  switch (result.kind) {
    case "done":
      if (drilling) await failpoint("write.before_ack");
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

/** BullMQ keeps the message of what was thrown, and can't fail a job for null: it would stall until its limit. */
function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(typeof thrown === "string" ? thrown : inspect(thrown));
}
