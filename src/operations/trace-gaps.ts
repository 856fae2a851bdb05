import { ROWS_AT_MOST, type TraceRows } from "../db/trace.js";
import { isStage, type OrderStatus, STAGES, type Stage } from "../domain/stages.js";
import { ATTEMPTS } from "./forward.js";
import type { TraceFacts, TraceInRedis } from "./trace-facts.js";

/** What should be there and isn't, or stands where it shouldn't: a sentence each. Empty where all is as it must be. */
export function findGaps(facts: TraceFacts): string[] {
  const { rows, inRedis } = facts;
  const told = rows instanceof Error ? null : rows;
  const live = inRedis instanceof Error ? null : inRedis;
  return [
    ...(told ? [] : ["The database does not answer: what it holds is not known."]),
    ...(live ? [] : ["Redis does not answer: what it and the queue hold is not known."]),
    ...(told ? [...ofTable(told), ...ofOrder(told), ...ofMoney(told), ...ofEvents(told), ...ofLists(told)] : []),
    ...(told && live ? ofJourney(facts, told, live) : []),
    ...(live ? ofRedis(facts, told, live) : []),
  ];
}

function ofTable({ request, deadLetters }: TraceRows): string[] {
  if (!request || request.outcome !== null) return [];
  const open = deadLetters.some(({ status }) => status === "OPEN");
  if (request.parkedAt && !open) return ["It is parked, but has no open dead letter: nobody will see to it."];
  if (!request.parkedAt && open) return ["It has an open dead letter, but is not parked."];
  return [];
}

/** The movements that an order has made by the time it has this status; a refund ends with one of two. */
const MOVED: Readonly<Record<OrderStatus, readonly (readonly string[])[]>> = {
  PENDING_PAYMENT: [["LOCK"]],
  PAID: [["LOCK"], ["SELL"]],
  CANCELLED: [["LOCK"], ["RELEASE"]],
  EXPIRED: [["LOCK"], ["RELEASE"]],
  REFUND_PENDING: [["LOCK"], ["SELL"], ["REFUND_START"]],
  REFUNDED: [["LOCK"], ["SELL"], ["REFUND_START"], ["REFUND_DONE", "WRITE_OFF"]],
};

function ofOrder({ request, order, movements }: TraceRows): string[] {
  if (!order) return request?.outcome === "ORDERED" ? ["It was decided ORDERED, but there is no order."] : [];
  const made = new Set<string>(movements.map(({ kind }) => kind));
  const outcome = request ? (request.outcome ?? "nothing yet") : null;
  return [
    ...(request ? [] : ["There is an order, but no request that it is of."]),
    ...(outcome === null || outcome === "ORDERED" ? [] : [`There is an order, but it was decided ${outcome}.`]),
    ...MOVED[order.status]
      .filter((kinds) => !kinds.some((kind) => made.has(kind)))
      .map((kinds) => `The order is ${order.status}, but its units never made the movement ${kinds.join(" or ")}.`),
  ];
}

function ofMoney({ order, payments }: TraceRows): string[] {
  const paid = order?.status === "PAID" || order?.status === "REFUND_PENDING" || order?.status === "REFUNDED";
  if (!order || !paid || payments.length === ROWS_AT_MOST) return [];
  const payment = payments.find(({ outcome, paymentRef }) => outcome === "PAID" && paymentRef === order.paymentRef);
  return payment ? [] : [`The order is ${order.status}, but no payment of it is on record.`];
}

/** Events that Redis has yet to hear: those of before a load are in it, and only wait to be marked. */
function untold({ events, sale }: TraceRows): TraceRows["events"] {
  return events.filter(({ appliedAt, epoch }) => appliedAt === null && epoch >= (sale?.epoch ?? 0));
}

function ofEvents(rows: TraceRows): string[] {
  return untold(rows).map(({ toStage, units }) => {
    const back = units > 0 ? `, and to get ${units} back` : "";
    return `An event is not applied: Redis has yet to hear of ${toStage}${back}.`;
  });
}

function ofLists({ movements, events, payments, deadLetters, audit }: TraceRows): string[] {
  return Object.entries({ movements, events, payments, "dead letters": deadLetters, "audit lines": audit })
    .filter(([, rows]) => rows.length === ROWS_AT_MOST)
    .map(([what]) => `Of its ${what} only the first ${ROWS_AT_MOST} are shown.`);
}

/** From Redis to the table, and from the table to the queue. */
function ofJourney(facts: TraceFacts, { request, order, sale }: TraceRows, live: TraceInRedis): string[] {
  if (!request && order) return [];
  if (!request)
    return live.request ? [`Accepted in Redis, never journaled: ${untilJournaled(facts, live)}.`] : [UNKNOWN];
  if (request.outcome !== null || request.parkedAt) return [];
  const lostByLoad = sale !== null && request.queuedEpoch < sale.epoch;
  if (!live.job || live.job.state === "unknown" || live.job.state === "completed") {
    const where = live.job?.state === "completed" ? "its job is done, and it is undecided" : "in no queue";
    const then = !lostByLoad && request.attempts >= ATTEMPTS ? "write a dead letter" : "add it";
    return [`Durable but ${where}: ${lookAt(then, request.dueAt, facts.now)}.`];
  }
  if (live.job.state !== "failed") return [];
  const then = lookAt(lostByLoad ? "add it again" : "write one", request.dueAt, facts.now);
  return [`Its job failed for good, and it has no dead letter: ${then}.`];
}

const UNKNOWN = "No store knows the request itself.";

function untilJournaled({ repairAfterMs, now }: TraceFacts, { request, sale }: TraceInRedis): string {
  if (!request || !sale.loaded) return "a load of the sale will forget it";
  if (request.epoch !== sale.epoch) {
    return `a load has forgotten it since (epoch ${request.epoch}, now ${sale.epoch}), it counts as never made`;
  }
  if (request.ahead === null) return "it does not stand in the line, so nobody will; reload the sale";
  return lookAt("journal it", new Date(request.acceptedAt.getTime() + repairAfterMs), now);
}

function lookAt(what: string, dueAt: Date, now: Date): string {
  const at = dueAt.toISOString();
  return dueAt > now
    ? `the forwarder will ${what} at ${at}`
    : `the forwarder was to ${what} at ${at}: does a worker run?`;
}

/** What Redis must hold of it: only a loaded sale can be asked. */
function ofRedis(facts: TraceFacts, rows: TraceRows | null, live: TraceInRedis): string[] {
  const { request, sale, unreadable } = live;
  if (unreadable) return ["Its key in Redis can't be read: reload the sale."];
  if (!request && facts.forgotten) return ["Its key in Redis has expired: the sale closed more than a week ago."];
  if (sale.loading) return ["The sale is being loaded into Redis right now."];
  if (!sale.loaded) return ["The sale is not in Redis, or not whole: a worker or the next buyer has it loaded again."];
  if (!rows?.request) return [];
  if (!request) return ["Redis does not know it, though the sale is loaded: reload the sale."];
  if (request.epoch !== sale.epoch) {
    return [`Redis has it of epoch ${request.epoch}, and the sale of ${sale.epoch}: reload the sale.`];
  }
  return ofLoaded(facts, rows, live, request.stage);
}

function ofLoaded(facts: TraceFacts, rows: TraceRows, { request, holder }: TraceInRedis, stage: Stage): string[] {
  // Until an event is applied, Redis rightly has the request as it was before.
  const before = untold(rows)[0]?.fromStage;
  const due = before !== undefined && isStage(before) ? before : facts.stage;
  if (due === null) return [];
  const parked = rows.request?.parkedAt != null;
  const inLine = request?.ahead != null;
  const waits = due === "QUEUED" && !parked;
  const holds = STAGES[due].status === "QUEUED" || STAGES[due].status === "SUCCESS";
  const mine = holder === facts.key.requestId;
  return [
    ...(stage === due
      ? []
      : [STAGES[stage].rank < STAGES[due].rank ? `Redis still has it as ${stage}.` : ahead(stage, due)]),
    ...(waits && !inLine ? ["It waits to be decided, but does not stand in the line."] : []),
    ...(!waits && inLine ? [`It stands in the line, though it is ${parked ? "parked" : "decided"}.`] : []),
    ...(holds && !mine ? [`The buyer's hold is ${holder ? `another request, ${holder}` : "gone"}.`] : []),
    ...(!holds && mine ? ["It is over, but still is the buyer's hold."] : []),
  ];
}

function ahead(stage: Stage, due: Stage): string {
  return `Redis has it as ${stage}, which the database does not: there it is ${due}.`;
}
