import { type JobState, Queue } from "bullmq";
import { queuePrefix } from "../redis/keys.js";
import type { RedisLink } from "../redis/link.js";
import { WRITE_ORDER, type WriteOrderPayload } from "./jobs.js";

/** The producers' side of the queues, one queue a sale. All go through one connection that never queues or re-sends. */
export interface OrderQueues {
  /**
   * Adds a job for each request; one whose id BullMQ still knows is ignored by it.
   * @throws RedisUnavailableError when it is not known whether they were added
   */
  add(saleId: string, requestIds: readonly string[]): Promise<void>;
  /** The states of the requests' jobs, in their order; `unknown` where there is none. */
  states(saleId: string, requestIds: readonly string[]): Promise<(JobState | "unknown")[]>;
  /** Removes jobs, so that the same ids can be added again. */
  remove(saleId: string, requestIds: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

/** BullMQ runs a script for each job it is asked about: the last of a thousand would miss a command's deadline. */
const SCRIPTS_AT_ONCE = 100;

export function createOrderQueues(redis: RedisLink, onError: (error: Error) => void): OrderQueues {
  const queues = new Map<string, Queue<WriteOrderPayload>>();

  const queueOf = (saleId: string): Queue<WriteOrderPayload> => {
    const present = queues.get(saleId);
    if (present) return present;
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
    });
    queue.on("error", onError);
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
    states: (saleId, requestIds) => inTurns(saleId, requestIds, (queue, requestId) => queue.getJobState(requestId)),
    async remove(saleId, requestIds) {
      await inTurns(saleId, requestIds, (queue, requestId) => queue.remove(requestId));
    },
    async close() {
      // They share a connection that is not theirs to close.
      queues.clear();
    },
  };
}
