/** What a load generator is told, and what it tells afterwards: plain data, sent between processes. */
import type { TokenAuth } from "./token.js";

/** How requests follow each other. */
export type Pace =
  /** So many connections, each of which sends its next request when it has heard the answer to the last one. */
  | { readonly kind: "closed"; readonly connections: number }
  /**
   * Requests are due at a fixed rate, whatever the server does. Latency counts from when one was due, also if no connection
   * was free then: a server that stalls can't hide it by not being asked (Gil Tene's "coordinated omission").
   */
  | { readonly kind: "open"; readonly connections: number; readonly perSecond: number };

/** Who asks. */
export interface Buyers {
  /** Their tokens' subjects begin with it; a number follows. */
  readonly prefix: string;
  readonly count: number;
  /**
   * `strangers` come again and again, with a new requestId each time. `once`: each has one intention to buy, and sends the same
   * request until it is accepted or refused for good; there is nothing more to send when all have.
   */
  readonly behaviour: "strangers" | "once";
}

/** One piece of load. */
export interface LoadPlan {
  /** of the server, without a path */
  readonly url: string;
  readonly pace: Pace;
  readonly buyers: Buyers;
  readonly target: { readonly saleId: string; readonly itemId: string };
  readonly auth: TokenAuth;
  /**
   * Load of the same kind before, which isn't counted.
   * @defaultValue 0
   */
  readonly warmUpSeconds?: number;
  /** When it ends, at the latest; buyers that come once may all have been answered earlier. */
  readonly until: { readonly seconds: number } | { readonly requests: number };
}

/** Latencies in milliseconds. */
export interface Latency {
  readonly mean: number;
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly p999: number;
  readonly max: number;
}

/** What came of it; all of it without the warm-up. */
export interface LoadResult {
  /** when the first request was sent, in milliseconds since 1970 */
  readonly startedAt: number;
  /** from then to the last answer */
  readonly seconds: number;
  readonly requests: number;
  /**
   * How often each answer was given: the reserve status, `error <code>`, `http <status>` where a body says neither,
   * `unanswered`, `connection lost`.
   */
  readonly answers: Readonly<Record<string, number>>;
  readonly httpStatuses: Readonly<Record<string, number>>;
  readonly latencyMs: Latency;
  /** How often a connection was opened. */
  readonly connectionsOpened: number;
  /** Processor time that the generator itself has used, in seconds. */
  readonly cpuSeconds: number;
}

/** What the two processes say to each other. */
export type ToGenerator = { readonly plan: LoadPlan } | { readonly go: true };
export type FromGenerator =
  | { readonly ready: true }
  /** the warm-up is over */
  | { readonly counting: true }
  | { readonly result: LoadResult }
  | { readonly failed: string };
