import type { Database } from "../db/client.js";
import { readEpoch } from "../db/fence.js";
import {
  absorbOlderEvents,
  findPendingEvents,
  findSalesWithEvents,
  markEvents,
  type PendingEvent,
} from "../db/request-events.js";
import { findSales } from "../db/sales.js";
import { isStage } from "../domain/stages.js";
import { REMEMBERED_AFTER_CLOSE_MS } from "../domain/time.js";
import { drilling, failpoint } from "../lifecycle/failpoints.js";
import type { Logger } from "../observability/logger.js";
import type { Metrics } from "../observability/metrics.js";
import { type Advance, type AdvanceResult, callAdvance } from "../redis/advance.js";
import type { RedisLink } from "../redis/link.js";
import { forEachSale } from "./for-each-sale.js";
import type { Loads } from "./loads.js";

export interface RelayDeps {
  readonly db: Database;
  readonly redis: RedisLink;
  readonly loads: Loads;
  readonly log: Logger;
  readonly metrics: Metrics;
}

const AT_ONCE = 500;

/**
 * Carries the events of all sales from the database to Redis, the oldest first. An event is applied once however often
 * it is carried, since only a higher rank changes anything; what can't be applied yet stays for the next pass, for ever
 * if need be. Safe to run on any number of workers at once.
 */
export async function relay(deps: RelayDeps): Promise<void> {
  const sales = (await findSalesWithEvents(deps.db)).map((id) => ({ id }));
  await forEachSale(deps.log, sales, async ({ id }) => {
    while (await relaySale(deps, id)) {
      // The next events of the sale.
    }
  });
}

/** Carries some events of a sale; true where there may be more that can be carried now. */
async function relaySale(deps: RelayDeps, saleId: string): Promise<boolean> {
  const older = await absorbOlderEvents(deps.db, saleId, AT_ONCE);
  if (older > 0) {
    deps.metrics.events.inc({ outcome: "absorbed" }, older);
    return true;
  }
  const events = await findPendingEvents(deps.db, saleId, AT_ONCE);
  const carried = await carryEvents(deps, saleId, events);
  return events.length === AT_ONCE && carried;
}

/**
 * Carries these events of a sale to Redis and marks those that need not be carried again; true where that is all of them.
 * Safe to repeat. @throws RedisUnavailableError, a database error
 */
export async function carryEvents(deps: RelayDeps, saleId: string, events: readonly PendingEvent[]): Promise<boolean> {
  if (events.length === 0) return true;
  const reply = await callAdvance(deps.redis, saleId, events.map(asAdvance));
  if (reply.kind === "not_loaded") return absorbOrLoad(deps, saleId, events);
  // What is met now is mended by a load that has not begun yet, however old the events are.
  const presentEpoch = async () => (await readEpoch(deps.db, saleId)) ?? 0;
  if (reply.kind === "damaged") {
    deps.log.error({ saleId, key: reply.key }, "a key of the sale is damaged");
    deps.loads.request(saleId, "damaged", await presentEpoch());
    return false;
  }
  // Redis doesn't know a request that the database has decided: never 'applied', a load takes it in.
  if (reply.results.includes("unknown")) deps.loads.request(saleId, "drift", await presentEpoch());
  // Whoever was loading it may have died, and a sale that is over has nobody else who would notice.
  if (reply.results.includes("later")) deps.loads.request(saleId, "not_loaded");
  if (drilling) await failpoint("relay.before_mark");
  const ended = (...results: AdvanceResult[]) =>
    events.filter((_, at) => results.includes(reply.results[at] ?? "later")).map((event) => event.id);
  await mark(deps, saleId, ended("applied", "stale"), "applied");
  await mark(deps, saleId, ended("absorbed"), "absorbed");
  return reply.results.every((result) => result !== "later" && result !== "unknown");
}

/** A sale that is gone from Redis is loaded again, which takes its events in; one that never will be has absorbed them. */
async function absorbOrLoad(deps: RelayDeps, saleId: string, events: readonly PendingEvent[]): Promise<boolean> {
  const [sale] = await findSales(deps.db, [saleId]);
  const forgotten = !sale || sale.closesAt.getTime() + REMEMBERED_AFTER_CLOSE_MS <= deps.redis.clock.now();
  if (!forgotten) {
    deps.loads.request(saleId, "not_loaded");
    return false;
  }
  await mark(
    deps,
    saleId,
    events.map((event) => event.id),
    "absorbed",
  );
  return true;
}

async function mark(
  deps: RelayDeps,
  saleId: string,
  ids: readonly string[],
  how: "applied" | "absorbed",
): Promise<void> {
  if (ids.length === 0) return;
  await markEvents(deps.db, saleId, ids, how);
  deps.metrics.events.inc({ outcome: how }, ids.length);
}

function asAdvance(event: PendingEvent): Advance {
  if (!isStage(event.toStage)) throw new Error(`Event ${event.id} leads to an unknown stage.`);
  const { requestId, toStage: stage, reason, units, epoch } = event;
  return { requestId, stage, reason, units, epoch };
}
