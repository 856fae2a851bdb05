import { Queue } from "bullmq";
import { Redis } from "ioredis";
import type { ContenderName } from "../names.js";
import { NOOP_QUEUE, startNoopWorker } from "../programs.js";
import type { Round } from "../results.js";
import { type Bench, watchOrders, withTrial } from "../trial.js";
import { until } from "../wait.js";
import { acceptedOf, cpuEach, type Measure, roundOf, unexpected } from "./measure.js";

const CONNECTIONS = 64;
const JOBS_AT_ONCE = 500;

/**
 * Jobs a second from a full queue: all requests are accepted while no worker runs, then workers start. The clock runs from the
 * first that is seen to be done to the last, so that how long a process takes to start is not in it.
 */
export const queue: Measure = {
  name: "queue",
  contenders: ["sluice", "straightforward", "noop-worker"],
  round: (bench, contender) => {
    const jobs = bench.quick ? 4_000 : 20_000;
    return contender === "noop-worker" ? drainWithoutWork(bench, jobs) : drain(bench, contender, jobs);
  },
};

function drain(bench: Bench, contender: ContenderName, jobs: number): Promise<Round> {
  return withTrial(bench, contender, { workers: false }, async (trial) => {
    const target = await trial.openSale(jobs);
    const { answers } = await trial.load({
      pace: { kind: "closed", connections: CONNECTIONS },
      buyers: { prefix: "buyer-", count: jobs, behaviour: "once" },
      target,
      until: { seconds: 600 },
    });
    const before = trial.cpu();
    const clock = stopwatch(jobs);
    const drained = watchOrders(trial.stores.databaseUrl, target, clock.look);
    await Promise.all([drained, trial.running.startWorkers()]);
    const details = cpuEach(before, trial.cpu(), jobs);
    await trial.whenOrdered(target, jobs);
    const breaches = [
      ...(acceptedOf(answers) === jobs ? [] : unexpected("of buyers with one each", answers, ["QUEUED"])),
      ...(await trial.findBreaches(target)),
    ];
    return roundOf(clock.perSecond(), breaches, details, answers);
  });
}

/** The same number of jobs, with the least in them, and nothing done about them. */
async function drainWithoutWork(bench: Bench, jobs: number): Promise<Round> {
  const stores = await bench.stores.fresh();
  const redis = new Redis(stores.redisUrl, { maxRetriesPerRequest: null });
  const queue = new Queue(NOOP_QUEUE, { connection: redis, defaultJobOptions: { removeOnComplete: true } });
  try {
    for (let at = 0; at < jobs; at += JOBS_AT_ONCE) {
      const some = Array.from({ length: Math.min(JOBS_AT_ONCE, jobs - at) }, () => ({ name: "nothing", data: {} }));
      await queue.addBulk(some);
    }
    const clock = stopwatch(jobs);
    const worker = await startNoopWorker(bench, stores);
    try {
      await until(async () => clock.look(jobs - (await queue.count()) - (await queue.getActiveCount()), Date.now()), {
        what: "the queue to be empty",
        timeoutMs: 120_000,
        everyMs: 10,
      });
      return roundOf(clock.perSecond(), [], { "cpu worker, µs each": (worker.cpuSeconds() * 1e6) / jobs });
    } finally {
      await worker.stop();
    }
  } finally {
    await queue.close();
    redis.disconnect();
    await stores.close();
  }
}

/** Runs from the first job that is seen to be done to the last. */
function stopwatch(jobs: number) {
  let first: { readonly done: number; readonly at: number } | null = null;
  let endedAt = 0;
  return {
    look(done: number, at: number): true | null {
      if (done > 0 && first === null) first = { done, at };
      if (done < jobs) return null;
      endedAt = at;
      return true;
    },
    perSecond: () => (first ? ((jobs - first.done) * 1_000) / (endedAt - first.at) : 0),
  };
}
