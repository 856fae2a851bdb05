import { build } from "hdr-histogram-js";
import type { HttpAnswer } from "./answer.js";
import type { LoadResult } from "./plan.js";

const LONGEST_MICROSECONDS = 10 * 60 * 1_000_000;
const SECOND = 1_000;

/** Counts answers and their latencies. */
export interface Tally {
  /** @param sinceMs when the request was sent, or due, by `performance.now()` */
  count(answer: HttpAnswer | null, sinceMs: number): void;
  countUnanswered(requests: number): void;
  result(startedAtMs: number, endedAtMs: number, connectionsOpened: number): LoadResult;
}

export function createTally(): Tally {
  const latencies = build({
    highestTrackableValue: LONGEST_MICROSECONDS,
    numberOfSignificantValueDigits: 3,
    bitBucketSize: 32,
    autoResize: false,
  });
  const answers: Record<string, number> = {};
  const httpStatuses: Record<string, number> = {};
  const cpuBefore = process.cpuUsage();
  const add = (counts: Record<string, number>, kind: string, by = 1) => {
    counts[kind] = (counts[kind] ?? 0) + by;
  };
  const ms = (microseconds: number) => microseconds / 1_000;

  return {
    count(answer, sinceMs) {
      const microseconds = Math.round((performance.now() - sinceMs) * 1_000);
      latencies.recordValue(Math.min(Math.max(1, microseconds), LONGEST_MICROSECONDS));
      add(answers, answer?.kind ?? "connection lost");
      if (answer) add(httpStatuses, String(answer.httpStatus));
    },
    countUnanswered(requests) {
      if (requests > 0) add(answers, "unanswered", requests);
    },
    result(startedAtMs, endedAtMs, connectionsOpened) {
      const cpu = process.cpuUsage(cpuBefore);
      return {
        startedAt: performance.timeOrigin + startedAtMs,
        seconds: (endedAtMs - startedAtMs) / SECOND,
        requests: Object.values(answers).reduce((sum, count) => sum + count, 0),
        answers,
        httpStatuses,
        latencyMs: {
          mean: ms(latencies.mean),
          p50: ms(latencies.getValueAtPercentile(50)),
          p90: ms(latencies.getValueAtPercentile(90)),
          p99: ms(latencies.getValueAtPercentile(99)),
          p999: ms(latencies.getValueAtPercentile(99.9)),
          max: ms(latencies.maxValue),
        },
        connectionsOpened,
        cpuSeconds: (cpu.user + cpu.system) / 1e6,
      };
    },
  };
}
