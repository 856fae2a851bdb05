import type { JobState } from "bullmq";
import type { RedisLink } from "../redis/link.js";
import { failureOf, type JobFailure, UNREADABLE } from "./job-failure.js";
import type { OrderQueues } from "./queues.js";

/** What BullMQ remembers of one request's job. */
export interface JobSeen {
  readonly state: JobState | "unknown";
  /** how often it was begun */
  readonly attempts: number;
  /** its last failure, also where it is to be tried again */
  readonly failure: JobFailure | null;
  /** null where the job can't be read */
  readonly addedAt: Date | null;
  /** when it was begun last */
  readonly startedAt: Date | null;
  /** when it failed for good: done jobs are not kept */
  readonly finishedAt: Date | null;
}

/** Reads the job of a request; null where there is none. It writes nothing. @throws RedisUnavailableError */
export function readJob(
  redis: RedisLink,
  queues: Pick<OrderQueues, "open">,
  saleId: string,
  requestId: string,
): Promise<JobSeen | null> {
  return redis.run(async () => {
    const queue = queues.open(saleId);
    try {
      const state = await queue.getJobState(requestId);
      const job = await queue.getJob(requestId);
      if (!job) return null;
      return {
        state,
        attempts: job.attemptsStarted,
        failure: job.failedReason ? failureOf(job) : null,
        addedAt: timeOf(job.timestamp),
        startedAt: timeOf(job.processedOn),
        finishedAt: timeOf(job.finishedOn),
      };
    } catch (error) {
      // A job whose data is no JSON can't even be handed out.
      if (!(error instanceof SyntaxError)) throw error;
      const failure = { stage: "job" as const, error: UNREADABLE, attempts: 0 };
      const unreadable = { attempts: 0, addedAt: null, startedAt: null, finishedAt: null };
      return { ...unreadable, failure, state: await queue.getJobState(requestId) };
    } finally {
      void queue.close().catch(() => {});
    }
  });
}

function timeOf(ms: number | undefined): Date | null {
  return ms ? new Date(ms) : null;
}
