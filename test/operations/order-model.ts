/** What a sale must be after each command, by as few rules as will do: the stores are compared with it. */
import type { OrderStatus, Stage } from "../../src/domain/stages.js";

/** Ranks of the stages, written down once more. */
const RANK: Partial<Record<Stage, number>> = { QUEUED: 20, ORDERED: 30, PAID: 40, REFUND_PENDING: 50 };
const rankOf = (stage: Stage) => RANK[stage] ?? 90;

export interface ModelRequest {
  readonly requestId: string;
  readonly buyerId: string;
  /** which of the sale's items */
  readonly item: number;
  readonly quantity: number;
  /** null until it is written */
  status: OrderStatus | null;
  /** whether its window has passed */
  late: boolean;
  paymentRef: string | null;
  restocked: boolean;
  /** where Redis believes it is */
  inRedis: Stage;
}

interface ModelPayment {
  readonly requestId: string;
  readonly amountMinor: number;
  readonly outcome: string;
  due: boolean;
  refundRef: string | null;
}

interface Event {
  readonly request: ModelRequest;
  readonly from: Stage;
  readonly to: Stage;
  readonly units: number;
}

const stageOf = ({ status }: ModelRequest): Stage =>
  status === null ? "QUEUED" : status === "PENDING_PAYMENT" ? "ORDERED" : status;
const isHeld = ({ status }: ModelRequest) =>
  status === null || ["PENDING_PAYMENT", "PAID", "REFUND_PENDING"].includes(status);
const sum = (requests: readonly ModelRequest[]) => requests.reduce((units, { quantity }) => units + quantity, 0);

export type Model = ReturnType<typeof createModel>;

/** A sale that was just opened. Each command answers with what its caller must be told: a kind, a status, or an error's code. */
export function createModel(initial: readonly number[], maxPerBuyer: number, priceMinor: number) {
  const items = initial.map((units) => ({ initial: units, remaining: units }));
  const requests: ModelRequest[] = [];
  const holders = new Map<string, string>();
  const payments = new Map<string, ModelPayment>();
  let untold: Event[] = [];
  let paused = false;

  const itemOf = (item: number) => items[item] as (typeof items)[number];
  const unitsWith = (item: number, status: OrderStatus | null) =>
    sum(requests.filter((request) => request.item === item && request.status === status));
  const available = (item: number) =>
    itemOf(item).initial -
    unitsWith(item, "PENDING_PAYMENT") -
    unitsWith(item, "PAID") -
    unitsWith(item, "REFUND_PENDING");
  const find = (requestId: string) => requests.find((request) => request.requestId === requestId);

  const advance = (request: ModelRequest, to: Stage, units: number) => {
    if (rankOf(to) <= rankOf(request.inRedis)) return;
    request.inRedis = to;
    itemOf(request.item).remaining += units;
    if (rankOf(to) === 90 && holders.get(request.buyerId) === request.requestId) holders.delete(request.buyerId);
  };
  const change = (request: ModelRequest, status: OrderStatus, units: number, told: boolean) => {
    const event = { request, from: stageOf(request), to: status as Stage, units };
    request.status = status;
    if (told) advance(request, event.to, units);
    else untold.push(event);
    return status;
  };
  const load = () => {
    untold = [];
    holders.clear();
    for (const request of requests) {
      request.inRedis = stageOf(request);
      if (isHeld(request)) holders.set(request.buyerId, request.requestId);
    }
    for (const [at, item] of items.entries()) item.remaining = available(at) - unitsWith(at, null);
  };

  return {
    requests,
    load,
    reserve(wish: Pick<ModelRequest, "requestId" | "buyerId" | "item" | "quantity">): string {
      const { requestId, buyerId, item, quantity } = wish;
      const known = find(requestId);
      if (known) {
        const same = known.buyerId === buyerId && known.item === item && known.quantity === quantity;
        if (!same) return "request_conflict";
        return known.inRedis === "QUEUED" ? "queued" : "decided";
      }
      if (paused) return "paused";
      if (holders.has(buyerId)) return "already_reserved";
      if (quantity > maxPerBuyer) return "limit_exceeded";
      if (itemOf(item).remaining === 0) return "sold_out";
      if (itemOf(item).remaining < quantity) return "insufficient";
      itemOf(item).remaining -= quantity;
      holders.set(buyerId, requestId);
      requests.push({ ...wish, status: null, late: false, paymentRef: null, restocked: false, inRedis: "QUEUED" });
      return "queued";
    },
    /** Writes whatever waits; what was written before is told again, as it was before what Redis has yet to hear of it. */
    write(told: boolean): void {
      for (const request of requests) {
        request.status ??= "PENDING_PAYMENT";
        const next = untold.find((event) => event.request === request);
        if (told) advance(request, next?.from ?? stageOf(request), 0);
      }
    },
    pay(requestId: string, paymentRef: string, amountMinor: number, told: boolean): string {
      const before = payments.get(paymentRef);
      if (before) {
        if (before.requestId !== requestId || before.amountMinor !== amountMinor) return "CONFLICT";
        return before.outcome === "PAID" ? "ALREADY_PAID" : before.outcome;
      }
      const request = find(requestId);
      const open = request?.status === "PENDING_PAYMENT" && !request.late;
      const right = request !== undefined && amountMinor === request.quantity * priceMinor;
      const outcome = !open ? "REFUND_DUE" : right ? "PAID" : "AMOUNT_MISMATCH";
      payments.set(paymentRef, { requestId, amountMinor, outcome, due: outcome !== "PAID", refundRef: null });
      if (request && outcome === "PAID") {
        request.paymentRef = paymentRef;
        change(request, "PAID", 0, told);
      }
      return outcome;
    },
    cancel(requestId: string, buyerId: string | null, told: boolean): string {
      const request = find(requestId);
      if (!request?.status || (buyerId !== null && request.buyerId !== buyerId)) return "NOT_FOUND";
      if (request.status === "CANCELLED") return "CANCELLED";
      if (request.status !== "PENDING_PAYMENT") return "CONFLICT";
      return change(request, "CANCELLED", request.quantity, told);
    },
    letPass(requestId: string): void {
      const request = find(requestId);
      if (request?.status === "PENDING_PAYMENT") request.late = true;
    },
    expire(told: boolean): string {
      const due = requests.filter(({ status, late }) => status === "PENDING_PAYMENT" && late);
      for (const request of due) change(request, "EXPIRED", request.quantity, told);
      return String(due.length);
    },
    refund(requestId: string, told: boolean): string {
      const request = find(requestId);
      if (!request?.status) return "NOT_FOUND";
      if (request.status === "REFUND_PENDING" || request.status === "REFUNDED") return request.status;
      if (request.status !== "PAID") return "CONFLICT";
      (payments.get(request.paymentRef ?? "") as ModelPayment).due = true;
      return change(request, "REFUND_PENDING", 0, told);
    },
    completeRefund(requestId: string, refundRef: string, restock: boolean, told: boolean): string {
      const request = find(requestId);
      const payment = payments.get(request?.paymentRef ?? "");
      const taken = [...payments.values()].some((other) => other.refundRef === refundRef && other !== payment);
      if (taken) return "CONFLICT";
      if (!request?.status) return "NOT_FOUND";
      if (request.status === "REFUNDED") {
        return payment?.refundRef === refundRef && request.restocked === restock ? "REFUNDED" : "CONFLICT";
      }
      if (request.status !== "REFUND_PENDING" || !payment) return "CONFLICT";
      payment.refundRef = refundRef;
      request.restocked = restock;
      if (!restock) itemOf(request.item).initial -= request.quantity;
      return change(request, "REFUNDED", restock ? request.quantity : 0, told);
    },
    refundPayment(paymentRef: string, refundRef: string): string {
      const payment = payments.get(paymentRef);
      if ([...payments.values()].some((other) => other.refundRef === refundRef && other !== payment)) return "CONFLICT";
      if (!payment) return "NOT_FOUND";
      if (payment.outcome === "PAID") return "CONFLICT";
      payment.refundRef ??= refundRef;
      return payment.refundRef === refundRef ? "done" : "CONFLICT";
    },
    adjust(item: number, delta: number, told: boolean): string {
      if (!told) return "SERVICE_UNAVAILABLE";
      if (available(item) + delta < unitsWith(item, null)) return "CONFLICT";
      itemOf(item).initial += delta;
      load();
      return "done";
    },
    setPaused(now: boolean): void {
      paused = now;
    },
    relay(): void {
      for (const { request, to, units } of untold) advance(request, to, units);
      untold = [];
    },
    /** What the stores must hold. */
    view: () => ({
      items: items.map(({ initial: units, remaining }, at) => ({
        initial: units,
        available: available(at),
        locked: unitsWith(at, "PENDING_PAYMENT"),
        sold: unitsWith(at, "PAID"),
        refundPending: unitsWith(at, "REFUND_PENDING"),
        remaining,
      })),
      requests: Object.fromEntries(
        requests.map(({ requestId, status, paymentRef, inRedis }) => [requestId, { status, paymentRef, inRedis }]),
      ),
      holders: Object.fromEntries(holders),
      payments: Object.fromEntries(
        [...payments].map(([ref, { outcome, due, refundRef }]) => [ref, { outcome, due, refundRef }]),
      ),
      untold: untold.length,
    }),
  };
}
