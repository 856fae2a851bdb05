import type { HttpAnswer } from "./answer.js";
import { type Connection, openConnection } from "./connection.js";
import type { LoadPlan, LoadResult } from "./plan.js";
import { type NextRequest, prepareRequests } from "./requests.js";
import { createTally } from "./tally.js";

const SECOND = 1_000;
/** How long what is under way may take when no more is sent. */
const LAST_ANSWERS_MS = 30 * SECOND;
/** How long a buyer who was told to come again waits. */
const AGAIN_MS = 20;

/** After these the buyer has what he wanted, or knows that he won't get it; all others mean: send the same again. */
const FINAL = new Set([
  ...["QUEUED", "DECIDED", "SOLD_OUT", "ENDED", "ALREADY_RESERVED", "INSUFFICIENT", "LIMIT_EXCEEDED"],
  ...["REQUEST_CONFLICT", "error UNAUTHENTICATED", "error FORBIDDEN", "error BAD_USER_INPUT", "error NOT_FOUND"],
]);

/** A load that is made ready: its requests are built, its tokens signed. */
export interface PreparedLoad {
  /** Sends it; calls back when the warm-up is over. @throws Error where the server can't be reached or speaks no HTTP */
  run(onCounting?: () => void): Promise<LoadResult>;
}

export function prepareLoad(plan: LoadPlan): PreparedLoad {
  const { pace, until, buyers } = plan;
  if (pace.kind === "open" && buyers.behaviour === "once" && requestsDue(until, pace.perSecond) > buyers.count) {
    throw new Error("more requests would be due than there are buyers");
  }
  const next = prepareRequests(plan);
  return {
    async run(onCounting = () => {}) {
      const { warmUpSeconds = 0 } = plan;
      if (warmUpSeconds > 0) await drive({ ...plan, until: { seconds: warmUpSeconds } }, next);
      onCounting();
      return drive(plan, next);
    },
  };
}

/** One connection and what is under way on it. */
interface Lane {
  readonly connection: Connection;
  request: Buffer | null;
  sinceMs: number;
}

function drive(plan: LoadPlan, next: NextRequest): Promise<LoadResult> {
  return new Promise((resolve, reject) => {
    const tally = createTally();
    let opened = 0;
    let settled = false;
    let lastAnswerMs = performance.now();
    const lanes: Lane[] = [];

    const end = (finish: () => void) => {
      if (settled) return;
      settled = true;
      for (const { connection } of lanes) connection.close();
      finish();
    };
    const pacing = plan.pace.kind === "closed" ? closedLoop(plan, next) : openLoop(plan, plan.pace, next);
    const startedMs = performance.now();
    const done = () => {
      const unanswered = lanes.filter((lane) => lane.request !== null).length + pacing.waiting();
      tally.countUnanswered(unanswered);
      end(() => resolve(tally.result(startedMs, lastAnswerMs, opened)));
    };

    const { hostname: host, port } = new URL(plan.url);
    for (let at = 0; at < plan.pace.connections; at += 1) {
      const connection = openConnection({
        host,
        port: Number(port),
        onOpened: () => {
          opened += 1;
        },
        onBroken: (error) => end(() => reject(error)),
        onAnswer(answer) {
          lastAnswerMs = performance.now();
          tally.count(answer, lane.sinceMs);
          const request = lane.request;
          lane.request = null;
          pacing.answered(lane, answer, request as Buffer);
        },
      });
      const lane: Lane = { connection, request: null, sinceMs: 0 };
      lanes.push(lane);
    }
    pacing.begin(lanes, startedMs, done);
  });
}

/** Decides what is sent when. */
interface Pacing {
  begin(lanes: readonly Lane[], startedMs: number, done: () => void): void;
  answered(lane: Lane, answer: HttpAnswer | null, request: Buffer): void;
  /** How many requests are due and were not sent. */
  waiting(): number;
}

function send(lane: Lane, request: Buffer, sinceMs: number): void {
  lane.request = request;
  lane.sinceMs = sinceMs;
  lane.connection.send(request);
}

function closedLoop({ buyers, until }: LoadPlan, next: NextRequest): Pacing {
  const requestsAtMost = "requests" in until ? until.requests : Number.POSITIVE_INFINITY;
  const insists = buyers.behaviour === "once";
  let underWay = 0;
  let sent = 0;
  let stopAtMs = Number.POSITIVE_INFINITY;
  let done = () => {};

  const sendOn = (lane: Lane, given: Buffer | null) => {
    const over = sent >= requestsAtMost || performance.now() >= stopAtMs;
    const request = over ? null : (given ?? next());
    if (request) {
      sent += 1;
      send(lane, request, performance.now());
      return;
    }
    underWay -= 1;
    if (underWay === 0) done();
  };

  return {
    begin(lanes, startedMs, whenDone) {
      const late = setTimeout(whenDone, "seconds" in until ? until.seconds * SECOND + LAST_ANSWERS_MS : 2 ** 31 - 1);
      done = () => {
        clearTimeout(late);
        whenDone();
      };
      if ("seconds" in until) stopAtMs = startedMs + until.seconds * SECOND;
      underWay = lanes.length;
      for (const lane of lanes) sendOn(lane, null);
    },
    answered(lane, answer, request) {
      if (!insists || (answer && FINAL.has(answer.kind))) return sendOn(lane, null);
      setTimeout(() => sendOn(lane, request), AGAIN_MS);
    },
    waiting: () => 0,
  };
}

function openLoop({ until }: LoadPlan, { perSecond }: { readonly perSecond: number }, next: NextRequest): Pacing {
  const everyMs = SECOND / perSecond;
  const total = requestsDue(until, perSecond);
  const idle: Lane[] = [];
  let due = 0;
  let sent = 0;
  let answeredCount = 0;
  let startedMs = 0;
  let done = () => {};

  const sendDue = () => {
    while (sent < due && idle.length > 0) {
      const request = next();
      if (!request) return;
      // Since it was due, however long it waited for a connection.
      send(idle.pop() as Lane, request, startedMs + sent * everyMs);
      sent += 1;
    }
  };
  const tick = () => {
    due = Math.min(total, Math.floor((performance.now() - startedMs) / everyMs) + 1);
    sendDue();
    if (due < total) setTimeout(tick, 1);
    else setTimeout(() => done(), LAST_ANSWERS_MS).unref();
  };

  return {
    begin(lanes, started, whenDone) {
      startedMs = started;
      done = whenDone;
      idle.push(...lanes);
      tick();
    },
    answered(lane) {
      answeredCount += 1;
      idle.push(lane);
      if (answeredCount === total) done();
      else sendDue();
    },
    waiting: () => due - sent,
  };
}

function requestsDue(until: LoadPlan["until"], perSecond: number): number {
  return "requests" in until ? until.requests : Math.floor(until.seconds * perSecond);
}
