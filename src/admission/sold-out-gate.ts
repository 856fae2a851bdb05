/**
 * The sold-out gate: after a SOLD_OUT this process answers strangers itself, in some microseconds, without asking Redis. What
 * it rests on, and what it costs: docs/decisions/0006-the-sold-out-gate.md.
 */
import { LRUCache } from "lru-cache";
import { MINUTE, SECOND } from "../domain/time.js";
import type { Logger } from "../observability/logger.js";
import type { Metrics } from "../observability/metrics.js";
import type { ReserveInput } from "../operations/reserve.js";
import type { SaleCache } from "../operations/sale-cache.js";
import type { Following, SaleEvents } from "../realtime/sale-events.js";
import type { ReserveReply } from "../redis/reserve.js";
import { type ReadAcceptedDeps, readAcceptedBuyers } from "./accepted-buyers.js";
import { createItemGate, type Emptying, type ItemGate } from "./item-gate.js";

export interface SoldOutGate {
  /** Whether this request can be answered with SOLD_OUT as it is, without asking Redis. */
  answers(input: ReserveInput): boolean;
  /** Takes note of what Redis replied to what it was asked at `askedAt` (performance.now()). */
  heard(input: ReserveInput, reply: ReserveReply, askedAt: number): void;
}

export interface SoldOutGateDeps extends ReadAcceptedDeps {
  readonly events: SaleEvents;
  readonly sales: SaleCache;
  readonly metrics: Metrics;
  readonly log: Logger;
  readonly config: {
    readonly tuning: {
      readonly soldOut: { readonly leaseMs: number; readonly items: number; readonly acceptedAtMost: number };
    };
  };
}

/** An item that was sold out when Redis was asked last. */
interface GatedItem {
  readonly gate: ItemGate;
  /** what of the sale stays as it is; null until it was read */
  limits: { readonly maxPerBuyer: number; readonly closesAtMs: number } | null;
  /** its buyers are not read again before (performance.now()) */
  readAgainAt: number;
  /** a request of it came last (performance.now()) */
  usedAt: number;
  readonly following: Following;
}

/** An item gives its place to another one when nobody has asked for it in so long: more than there is room for don't take turns. */
const IDLE_MS = 10 * SECOND;

/** Reading the buyers of an item takes a tenth of the time at most, however often it is sold out again. */
const REST_PER_READING = 10;
const REST_AT_LEAST_MS = SECOND / 4;
/** Those of whom there are too many become no fewer. */
const TOO_MANY_REST_MS = 1 * MINUTE;

export function createSoldOutGate(deps: SoldOutGateDeps): SoldOutGate {
  const { events, metrics, redis } = deps;
  const { leaseMs, items: itemsAtMost, acceptedAtMost } = deps.config.tuning.soldOut;
  const { met, opened, filters } = metrics.soldOutGate;
  const items = new LRUCache<string, GatedItem>({ max: itemsAtMost, dispose: (item) => item.following.stop() });
  metrics.soldOutGate.watchItems(() => items.size);
  let isReading = false;

  const hasRoom = (now: number) => {
    if (items.size < itemsAtMost) return true;
    const [leastUsed] = items.rvalues();
    return leastUsed !== undefined && now - leastUsed.usedAt > IDLE_MS;
  };

  const add = (key: string, saleId: string, itemId: string): GatedItem | null => {
    if (!hasRoom(performance.now())) return null;
    const gate = createItemGate({ leaseMs, onOpened: (by) => opened.inc({ by }) });
    const following = events.follow(saleId, (news) => {
      if (news.kind === "everything" || news.itemIds.includes(itemId)) gate.open(performance.now(), "event");
    });
    const item = { gate, limits: null, readAgainAt: 0, usedAt: performance.now(), following };
    items.set(key, item);
    return item;
  };

  /** One item at a time a process; who isn't read now is so after the next SOLD_OUT. */
  const read = async (item: GatedItem, { saleId, itemId }: ReserveInput, emptying: Emptying) => {
    const begun = performance.now();
    let restMs = REST_AT_LEAST_MS;
    isReading = true;
    try {
      const sale = await deps.sales.get(saleId);
      if (sale) item.limits = { maxPerBuyer: sale.maxPerBuyer, closesAtMs: sale.closesAt.getTime() };
      const accepted = await readAcceptedBuyers(deps, { saleId, itemId }, acceptedAtMost);
      if (accepted) item.gate.fill(emptying, accepted);
      else restMs = TOO_MANY_REST_MS;
      filters.inc({ outcome: accepted ? "read" : "too_many" });
    } catch (error) {
      filters.inc({ outcome: "failed" });
      deps.log.debug({ saleId, itemId, err: error }, "the buyers of a sold-out item can't be read");
    } finally {
      isReading = false;
      const took = performance.now() - begun;
      item.readAgainAt = performance.now() + Math.max(restMs, REST_PER_READING * took);
    }
  };

  const takeSoldOut = (input: ReserveInput, emptying: Emptying, askedAt: number) => {
    const key = keyOf(input);
    const item = items.get(key) ?? add(key, input.saleId, input.itemId);
    if (!item?.gate.soldOut(emptying, askedAt)) return;
    item.usedAt = performance.now();
    if (item.gate.isEmpty && !isReading && performance.now() >= item.readAgainAt) void read(item, input, emptying);
  };

  return {
    answers(input) {
      if (items.size === 0) return false;
      const item = items.get(keyOf(input));
      if (!item?.limits || !item.gate.emptying) return false;
      // What comes before stock in Redis comes before it here.
      const { maxPerBuyer, closesAtMs } = item.limits;
      if (!Number.isInteger(input.quantity) || input.quantity < 1 || input.quantity > maxPerBuyer) return false;
      if (redis.clock.now() >= closesAtMs) return false;
      const { runId } = item.gate.emptying;
      const heardAllSince = redis.facts()?.runId === runId ? item.following.heardAllSince(runId) : NOT_KNOWN;
      const now = performance.now();
      item.usedAt = now;
      const verdict = item.gate.judge(input.buyerId, now, heardAllSince);
      if (verdict !== "open") met(verdict);
      return verdict === "answer";
    },

    heard(input, reply, askedAt) {
      const runId = redis.facts()?.runId;
      if (reply.kind === "sold_out") {
        const { epoch, generation } = reply;
        if (runId) takeSoldOut(input, { runId, epoch, generation }, askedAt);
        return;
      }
      if (items.size === 0 || SAYS_NOTHING.has(reply.kind)) return;
      const key = keyOf(input);
      const item = items.peek(key);
      if (!item || (reply.kind === "known" && item.gate.mayKnow(input.buyerId))) return;
      if (reply.kind === "ended") items.delete(key);
      else item.gate.open(performance.now(), "reply");
    },
  };
}

const NOT_KNOWN = Number.POSITIVE_INFINITY;

/** Replies that are given with and without stock. */
const SAYS_NOTHING: ReadonlySet<ReserveReply["kind"]> = new Set(["conflict", "held", "limit_exceeded"]);

function keyOf({ saleId, itemId }: ReserveInput): string {
  // Ids have no blanks in them, and what has one is no item of ours.
  return `${saleId} ${itemId}`;
}
