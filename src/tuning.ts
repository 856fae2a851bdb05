import { z } from "zod";
import { MINUTE, SECOND } from "./domain/time.js";

const ms = (byDefault: number) => z.number().int().min(1).default(byDefault);
const count = (byDefault: number) => z.number().int().min(1).default(byDefault);
const group = <Shape extends z.ZodRawShape>(shape: Shape) => z.strictObject(shape).prefault({} as never);

/**
 * Deadlines, sizes and intervals, in milliseconds where they say `Ms`. The defaults are what the tests and the benchmark
 * run with; SLUICE_TUNING takes any of them as JSON, for example {"repairAfterMs":5000,"pools":{"sale":20}}.
 */
export const tuningSchema = group({
  /** request > journal > Redis command: who waits gives up later than the one he waits for */
  deadlines: group({
    requestMs: ms(2 * SECOND),
    journalMs: ms(1 * SECOND),
    redisCommandMs: ms(SECOND / 2),
    /** how long a buyer waits for the payment provider; the gateway (deploy/nginx.conf) must wait longer */
    paymentMs: ms(10 * SECOND),
  }),
  sql: group({
    statementMs: ms(1 * SECOND),
    readStatementMs: ms(5 * SECOND),
    lockMs: ms(SECOND / 2),
    idleInTransactionMs: ms(5 * SECOND),
  }),
  /** connections a process: size them from the database's limit backwards */
  pools: group({ sale: count(10), orders: count(5), reads: count(5) }),
  /** how many payments, cancellations and the like of one sale a process has under way at once */
  orderLanes: count(3),
  journal: group({ maxRequests: count(256), maxWaitMs: ms(2) }),
  /**
   * `inFlight`: jobs of a sale that a process has under way at once. `ordersPerSecond`: so many requests a process decides a
   * second and no more, all its sales together and each in its turn, for a database that others need, too; null: as many as
   * it can. With several workers each has a ceiling of its own.
   */
  writer: group({
    maxJobs: count(256),
    maxWaitMs: ms(4),
    inFlight: count(512),
    ordersPerSecond: z.number().positive().nullable().default(null),
  }),
  /**
   * How long a silent worker keeps its jobs, how often others look for such jobs, and how often one may be taken over
   * before it counts as the cause. A batch takes milliseconds, and a worker that was only slow does no harm.
   */
  jobs: group({ lockMs: ms(10 * SECOND), stalledMs: ms(5 * SECOND), takeovers: count(3) }),
  loops: group({
    forwarderMs: ms(1 * SECOND),
    relayMs: ms(SECOND / 4),
    expirerMs: ms(1 * SECOND),
    statePusherMs: ms(1 * SECOND),
    queuesMs: ms(1 * SECOND),
    closerMs: ms(5 * SECOND),
    measureMs: ms(5 * SECOND),
    compensatorMs: ms(5 * SECOND),
    reconcilerMs: ms(1 * MINUTE),
  }),
  /** how old a request must be before the forwarder looks at it */
  repairAfterMs: ms(30 * SECOND),
  /** how long a request may wait for its end before the reconciler counts it as one that has none */
  overdueAfterMs: ms(5 * MINUTE),
  /** how long a dead letter waits for an operator, all dependencies being well, before its request is compensated */
  compensateAfterMs: ms(15 * MINUTE),
  /**
   * The sold-out gate (docs/decisions/0006-the-sold-out-gate.md): how long it answers without asking Redis, how recently the
   * way of the events must have been proved, for how many items it is kept (120 kB each), and up to how many accepted
   * requests of an item.
   */
  soldOut: group({
    leaseMs: ms(1 * SECOND),
    heardWithinMs: ms(SECOND / 2),
    items: count(100),
    acceptedAtMost: count(100_000),
  }),
  /** how long a stopping process may take for what is under way */
  drainMs: ms(10 * SECOND),
});

export type Tuning = z.infer<typeof tuningSchema>;
