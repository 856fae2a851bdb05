import type { TraceRows } from "../db/trace.js";
import { STAGES } from "../domain/stages.js";
import type { TraceFacts, TraceInRedis } from "./trace-facts.js";

export const TRACE_SOURCES = [
  "REDIS",
  "TABLE",
  "QUEUE",
  "ORDER",
  "STOCK",
  "EVENT",
  "PAYMENT",
  "DEAD_LETTER",
  "AUDIT",
] as const;
export type TraceSource = (typeof TRACE_SOURCES)[number];

export interface TraceEntry {
  /** null: how it stands now */
  readonly at: Date | null;
  readonly source: TraceSource;
  /** what happened, or how it stands, in words */
  readonly what: string;
  /** plain values: JSON can take them */
  readonly details: Readonly<Record<string, unknown>>;
}

/** What happened to a request, by time, and then how it stands in each store. */
export function listEntries({ rows, inRedis }: TraceFacts): TraceEntry[] {
  const told = rows instanceof Error ? null : rows;
  const live = inRedis instanceof Error ? null : inRedis;
  // In the order of a life, which those of the same instant keep.
  const entries = [
    ...(told ? ofTable(told) : []),
    ...(live ? ofRedis(live, told?.request !== null) : []),
    ...(live ? ofQueue(live) : []),
    ...(told ? [...ofOrder(told), ...ofStock(told), ...ofPayments(told), ...ofEvents(told)] : []),
    ...(told ? [...ofDeadLetters(told), ...ofAudit(told)] : []),
  ];
  return entries.sort((a, b) => timeOf(a) - timeOf(b));
}

function timeOf({ at }: TraceEntry): number {
  return at?.getTime() ?? Number.MAX_VALUE;
}

type Details = TraceEntry["details"];

/** An entry, where it happened. */
function happened(at: Date | null | undefined, source: TraceSource, what: string, details: Details = {}): TraceEntry[] {
  return at ? [{ at, source, what, details }] : [];
}

function ofTable({ request }: TraceRows): TraceEntry[] {
  if (!request) return [];
  const { itemId, quantity, epoch, acceptedAt, journaledAt, decidedAt, parkedAt, outcome, reason } = request;
  const { dueAt, attempts, queuedEpoch, lastError } = request;
  const seq = Number(request.seq);
  return [
    ...happened(acceptedAt, "REDIS", "accepted: its stock was taken", { itemId, quantity, epoch, seq }),
    ...happened(journaledAt, "TABLE", "journaled: durable from here on"),
    ...happened(decidedAt, "TABLE", `decided ${outcome}`, { reason }),
    ...happened(parkedAt, "TABLE", "parked: waits for an operator", { lastError }),
    {
      at: null,
      source: "TABLE",
      what: outcome === null ? `undecided${parkedAt ? " and parked" : ""}` : `decided ${outcome}`,
      details: { dueAt, attempts, queuedEpoch, lastError },
    },
  ];
}

function ofRedis({ sale, request, holder, unreadable }: TraceInRedis, hasRow: boolean): TraceEntry[] {
  const phase = sale.loaded ? "READY" : sale.loading ? "LOADING" : "not loaded";
  const ofSale = { saleEpoch: sale.epoch, salePhase: phase };
  const stands = (what: string, details: Details = {}): TraceEntry[] => [
    { at: null, source: "REDIS", what, details: { ...details, ...ofSale } },
  ];
  if (!request) return stands(unreadable ? "its key can't be read" : "nothing of it");
  const { itemId, quantity, epoch, seq, stage, reason, ahead, acceptedAt } = request;
  const { rank } = STAGES[stage];
  const place = ahead === null ? "not in line" : `in line, ${ahead} ahead`;
  return [
    ...(hasRow ? [] : happened(acceptedAt, "REDIS", "accepted: its stock was taken", { itemId, quantity, epoch, seq })),
    ...stands(`${stage}, ${place}`, {
      epoch,
      stage,
      rank,
      seq,
      reason,
      ahead,
      holdsBuyer: holder === request.requestId,
    }),
  ];
}

function ofQueue({ job }: TraceInRedis): TraceEntry[] {
  if (!job) return [{ at: null, source: "QUEUE", what: "no job", details: {} }];
  const { state, attempts, failure, addedAt, startedAt, finishedAt } = job;
  const error = failure?.error ?? null;
  return [
    ...happened(addedAt, "QUEUE", "its job was added"),
    ...happened(startedAt, "QUEUE", "its job was begun", { attempts }),
    ...happened(finishedAt, "QUEUE", "its job failed for good", { error }),
    { at: null, source: "QUEUE", what: `its job is ${state}`, details: { attempts, error } },
  ];
}

function ofOrder({ order }: TraceRows): TraceEntry[] {
  if (!order) return [];
  const { status, createdAt, paidAt, updatedAt, payBy, totalMinor, currency, paymentRef, reason } = order;
  const changed = status !== "PENDING_PAYMENT" && status !== "PAID";
  return [
    ...happened(createdAt, "ORDER", "written", { totalMinor, currency, payBy }),
    ...happened(paidAt, "ORDER", "paid", { paymentRef }),
    ...happened(changed ? updatedAt : null, "ORDER", `is ${status} since then`, { reason }),
  ];
}

function ofStock({ movements }: TraceRows): TraceEntry[] {
  return movements.flatMap(({ createdAt, kind, quantity, itemId }) =>
    happened(createdAt, "STOCK", `${kind} ${quantity}`, { itemId }),
  );
}

function ofPayments({ payments }: TraceRows): TraceEntry[] {
  return payments.flatMap(({ paymentRef, amountMinor, outcome, createdAt, refundDueAt, refundRef, refundedAt }) => [
    ...happened(createdAt, "PAYMENT", `reported: ${outcome}`, { paymentRef, amountMinor }),
    ...happened(refundDueAt, "PAYMENT", "is to be given back from now on", { paymentRef }),
    ...happened(refundedAt, "PAYMENT", "given back", { paymentRef, refundRef }),
  ]);
}

function ofEvents({ events }: TraceRows): TraceEntry[] {
  return events.flatMap(({ createdAt, appliedAt, absorbed, fromStage, toStage, units, epoch, reason }) => [
    ...happened(createdAt, "EVENT", `${fromStage} → ${toStage}, for Redis to hear`, { units, epoch, reason }),
    ...happened(appliedAt, "EVENT", `${toStage} ${absorbed ? "absorbed by a load" : "applied in Redis"}`, { units }),
  ]);
}

function ofDeadLetters({ deadLetters }: TraceRows): TraceEntry[] {
  return deadLetters.flatMap(({ id, stage, lastError, attempts, status, createdAt, resolvedAt }) => [
    ...happened(createdAt, "DEAD_LETTER", `given up at ${stage}`, { id: String(id), lastError, attempts, status }),
    ...happened(resolvedAt, "DEAD_LETTER", `is ${status} since then`, { id: String(id) }),
  ]);
}

function ofAudit({ audit }: TraceRows): TraceEntry[] {
  return audit.flatMap(({ createdAt, action, actor, reason, details }) =>
    happened(createdAt, "AUDIT", `${action} by ${actor}`, { reason, ...(details as object) }),
  );
}
