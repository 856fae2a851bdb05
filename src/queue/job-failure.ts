import type { Job } from "bullmq";

/** Why a job will not be run again. */
export interface JobFailure {
  /** `job`: it can't be read; `stalled`: too many workers died at it; `write`: its request can't be written */
  readonly stage: "job" | "stalled" | "write";
  readonly error: string;
  /** how often it was run */
  readonly attempts: number;
}

export const UNREADABLE = "The job can't be read.";
export const MISNAMED = "The job names another request than its own.";
/** BullMQ's own words, for which none of our code runs. */
const STALLED = /stalled more than/;

/** What BullMQ remembers of a failed job. */
export function failureOf(job: Pick<Job<unknown>, "failedReason" | "attemptsStarted">): JobFailure {
  const error = job.failedReason || "It failed without a reason.";
  const stage = STALLED.test(error) ? "stalled" : error === UNREADABLE || error === MISNAMED ? "job" : "write";
  return { stage, error, attempts: job.attemptsStarted };
}
