import { type JobState, Queue } from "bullmq";
import { queuePrefix } from "../redis/keys.js";
import type { RedisLink } from "../redis/link.js";
import { failureOf, type JobFailure, UNREADABLE } from "./job-failure.js";
import { WRITE_ORDER, type WriteOrderPayload } from "./jobs.js";

/** The producers' side of the queues, one queue a sale. All go through one connection that never queues or re-sends. */
export interface OrderQueues {
  /**
   * Adds a job for each request; one whose id BullMQ still knows is ignored by it.
   * @throws RedisUnavailableError when it is not known whether they were added
   */
  add(saleId: string, requestIds: readonly string[]): Promise<void>;
  /** The requests whose jobs wait or are being run, by one reading of the lists: each question after one reads them too. */
  standing(saleId: string): Promise<ReadonlySet<string>>;
  /** The states of the requests' jobs, in their order; `unknown` where there is none. */
  states(saleId: string, requestIds: readonly string[]): Promise<(JobState | "unknown")[]>;
  /** What is remembered of failed jobs, in the order of the requests. */
  failures(saleId: string, requestIds: readonly string[]): Promise<JobFailure[]>;
  /** Removes jobs, so that the same ids can be added again. */
  remove(saleId: string, requestIds: readonly string[]): Promise<void>;
  /** How many jobs a sale's queue has, by state. */
  counts(saleId: string): Promise<JobCounts>;
  /** The queue of a sale, to look at: it writes nothing by itself. Whoever opens it closes it; the connection stays open. */
  open(saleId: string): Queue<WriteOrderPayload>;
  close(): Promise<void>;
}

/** Done jobs are not kept, and ours have no priorities and no children. */
const COUNTED_STATES = ["waiting", "active", "delayed", "failed"] as const;
export type JobCounts = Readonly<Record<(typeof COUNTED_STATES)[number], number>>;

/** The lists that a job stands in until it is done, as BullMQ names them. */
const STANDING = ["wait", "paused", "active"] as const;
const LISTED_AT_ONCE = 5_000;

/** BullMQ runs a script for each job it is asked about: the last of a thousand would miss a command's deadline. */
const SCRIPTS_AT_ONCE = 100;

export function createOrderQueues(redis: RedisLink, onError: (error: Error) => void): OrderQueues {
  const queues = new Map<string, Queue<WriteOrderPayload>>();

  const openQueue = (saleId: string, options: { readonly skipMetasUpdate: boolean }): Queue<WriteOrderPayload> => {
    const queue = new Queue<WriteOrderPayload>(WRITE_ORDER.queue, {
      connection: redis.client,
      prefix: queuePrefix(saleId),
      // Without these an add at a cold start with Redis away hangs for ever.
      skipWaitingForReady: true,
      skipVersionCheck: true,
      defaultJobOptions: {
        attempts: WRITE_ORDER.attempts,
        backoff: WRITE_ORDER.backoff,
        removeOnComplete: true,
        removeOnFail: false,
      },
      ...options,
    });
    queue.on("error", onError);
    return queue;
  };

  const queueOf = (saleId: string): Queue<WriteOrderPayload> => {
    const queue = queues.get(saleId) ?? openQueue(saleId, { skipMetasUpdate: false });
    queues.set(saleId, queue);
    return queue;
  };

  const withQueue = async <Result>(saleId: string, use: (queue: Queue<WriteOrderPayload>) => Promise<Result>) => {
    try {
      return await redis.run(() => use(queueOf(saleId)));
    } catch (error) {
      // A queue that was made while Redis was away stays broken: make a new one next time.
      queues.delete(saleId);
      throw error;
    }
  };

  const inTurns = async <Result>(
    saleId: string,
    requestIds: readonly string[],
    use: (queue: Queue<WriteOrderPayload>, requestId: string) => Promise<Result>,
  ) => {
    const results: Result[] = [];
    for (let at = 0; at < requestIds.length; at += SCRIPTS_AT_ONCE) {
      const turn = requestIds.slice(at, at + SCRIPTS_AT_ONCE);
      results.push(...(await withQueue(saleId, (queue) => Promise.all(turn.map((id) => use(queue, id))))));
    }
    return results;
  };

  return {
    async add(saleId, requestIds) {
      if (requestIds.length === 0) return;
      const jobs = requestIds.map((requestId) => ({
        name: WRITE_ORDER.name,
        data: { v: 1 as const, saleId, requestId },
        opts: { jobId: requestId },
      }));
      await withQueue(saleId, (queue) => queue.addBulk(jobs));
    },
    async standing(saleId) {
      const ids = new Set<string>();
      for (const list of STANDING) {
        const key = `${queuePrefix(saleId)}:${WRITE_ORDER.queue}:${list}`;
        for (let at = 0, some: string[]; ; at += LISTED_AT_ONCE) {
          some = await redis.run((client) => client.lrange(key, at, at + LISTED_AT_ONCE - 1));
          for (const id of some) ids.add(id);
          if (some.length < LISTED_AT_ONCE) break;
        }
      }
      return ids;
    },
    states: (saleId, requestIds) => inTurns(saleId, requestIds, (queue, requestId) => queue.getJobState(requestId)),
    failures: (saleId, requestIds) =>
      inTurns(saleId, requestIds, async (queue, requestId) => {
        // A job whose data is no JSON can't even be handed out.
        const job = await queue.getJob(requestId).catch((error: unknown) => {
          if (error instanceof SyntaxError) return null;
          throw error;
        });
        return job ? failureOf(job) : { stage: "job" as const, error: UNREADABLE, attempts: 0 };
      }),
    async remove(saleId, requestIds) {
      await inTurns(saleId, requestIds, (queue, requestId) => queue.remove(requestId));
    },
    counts: (saleId) => withQueue(saleId, (queue) => queue.getJobCounts(...COUNTED_STATES) as Promise<JobCounts>),
    open: (saleId) => openQueue(saleId, { skipMetasUpdate: true }),
    async close() {
      // They share a connection that is not theirs to close.
      queues.clear();
    },
  };
}
