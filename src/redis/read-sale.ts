import { isStage, type ReservationReason, type Stage } from "../domain/stages.js";
import { saleKeys } from "./keys.js";
import type { RedisLink } from "./link.js";

/** What Redis holds of a sale; `loaded` only where it is ready on this very server, and every key is what it must be. */
export interface SaleInRedis {
  readonly loaded: boolean;
  readonly loading: boolean;
  readonly epoch: number;
  readonly stateVersion: number;
  readonly seq: number;
  readonly remaining: ReadonlyMap<string, number>;
}

/** A member of holders and pending that is no buyer and no request, so that the keys are there as long as the sale is. */
const SENTINEL = ".";

const NOTHING: SaleInRedis = {
  loaded: false,
  loading: false,
  epoch: 0,
  stateVersion: 0,
  seq: 0,
  remaining: new Map(),
};

/** Reads sales, in the order of the ids. @throws RedisUnavailableError */
export async function readSalesInRedis(link: RedisLink, saleIds: readonly string[]): Promise<SaleInRedis[]> {
  if (saleIds.length === 0) return [];
  return link.run(async (client, runId) => {
    const pipeline = client.pipeline();
    for (const saleId of saleIds) {
      const keys = saleKeys(saleId);
      pipeline.hmget(keys.sale, "phase", "runId", "epoch", "stateVersion", "seq");
      pipeline.hgetall(keys.stock);
      pipeline.hexists(keys.holders, SENTINEL);
      pipeline.zscore(keys.pending, SENTINEL);
    }
    const replies = (await pipeline.exec()) ?? [];
    return saleIds.map((_, at) => {
      const sale = unlessDamaged<(string | null)[]>(replies[4 * at]);
      const stock = unlessDamaged<Record<string, string>>(replies[4 * at + 1]) ?? {};
      const holders = unlessDamaged<number>(replies[4 * at + 2]);
      const pending = unlessDamaged<string>(replies[4 * at + 3]);
      // One damaged sale must not take the others' reading away: it counts as not loaded, which gets it loaded again. Every
      // sale has items, so one without any stock has lost its key; the other two have their sentinels.
      if (!sale) return NOTHING;
      const whole = Object.keys(stock).length > 0 && holders === 1 && pending !== null;
      const [phase, loadedOn, epoch, stateVersion, seq] = sale;
      return {
        loaded: phase === "READY" && loadedOn === runId && whole,
        loading: phase === "LOADING" && loadedOn === runId,
        epoch: Number(epoch ?? 0),
        stateVersion: Number(stateVersion ?? 0),
        seq: Number(seq ?? 0),
        remaining: new Map(Object.entries(stock).map(([itemId, units]) => [itemId, Math.max(0, Number(units) || 0)])),
      };
    });
  });
}

/** What of a sale is in line, and what is left. */
export interface Backlog {
  /** accepted requests that are not decided */
  readonly pending: number;
  /** units that can be reserved now, of all items */
  readonly remaining: number;
}

/** Reads how long the lines of sales are: saleId → backlog, of those that Redis has. @throws RedisUnavailableError */
export async function readBacklogs(link: RedisLink, saleIds: readonly string[]): Promise<Map<string, Backlog>> {
  if (saleIds.length === 0) return new Map();
  return link.run(async (client) => {
    const pipeline = client.pipeline();
    for (const saleId of saleIds) {
      const keys = saleKeys(saleId);
      pipeline.zcard(keys.pending);
      pipeline.hvals(keys.stock);
    }
    const replies = (await pipeline.exec()) ?? [];
    const backlogs = new Map<string, Backlog>();
    for (const [at, saleId] of saleIds.entries()) {
      const members = unlessDamaged<number>(replies[2 * at]);
      const stock = unlessDamaged<string[]>(replies[2 * at + 1]);
      // The sentinel is a member and no request; without it the key is gone, as one of a sale that isn't there.
      if (!members || !stock?.length) continue;
      const remaining = stock.reduce((sum, units) => sum + Math.max(0, Number(units) || 0), 0);
      backlogs.set(saleId, { pending: members - 1, remaining });
    }
    return backlogs;
  });
}

/** A request as Redis holds it. */
export interface RequestInRedis {
  readonly requestId: string;
  readonly buyerId: string;
  readonly itemId: string;
  readonly quantity: number;
  readonly stage: Stage;
  readonly reason: ReservationReason | null;
  readonly acceptedAt: Date;
  readonly epoch: number;
  readonly seq: number;
  /** accepted requests in front of it; null where it is not waiting */
  readonly ahead: number | null;
}

/**
 * Reads requests of any sales, in their order; null for what Redis doesn't have, or has in a form that can't be read: one
 * damaged key must not take the others' reading away. @throws RedisUnavailableError
 */
export async function readRequestsInRedis(
  link: RedisLink,
  wanted: readonly { readonly saleId: string; readonly requestId: string }[],
): Promise<(RequestInRedis | null)[]> {
  if (wanted.length === 0) return [];
  return link.run(async (client) => {
    const pipeline = client.pipeline();
    for (const { saleId, requestId } of wanted) {
      const keys = saleKeys(saleId);
      pipeline.hgetall(keys.request(requestId));
      pipeline.zrank(keys.pending, requestId);
    }
    const replies = (await pipeline.exec()) ?? [];
    return wanted.map(({ requestId }, at) => {
      const hash = unlessDamaged<Record<string, string>>(replies[2 * at]);
      const rank = unlessDamaged<number>(replies[2 * at + 1]);
      const ahead = rank === null ? null : rank - 1;
      return hash && parseRequest(requestId, hash, ahead);
    });
  });
}

function parseRequest(requestId: string, hash: Record<string, string>, ahead: number | null): RequestInRedis | null {
  const { buyer, item, stage } = hash;
  const [quantity, at, epoch, seq] = [hash.quantity, hash.at, hash.epoch, hash.seq].map(Number) as [
    number,
    number,
    number,
    number,
  ];
  const whole = [quantity, at, epoch, seq].every((value) => Number.isSafeInteger(value) && value > 0);
  if (!buyer || !item || !stage || !isStage(stage) || !whole) return null;
  const reason = (hash.reason as ReservationReason | undefined) ?? null;
  const acceptedAt = new Date(at);
  return { requestId, buyerId: buyer, itemId: item, quantity, stage, reason, acceptedAt, epoch, seq, ahead };
}

/** Waiting requests with a seq above `afterSeq`, the oldest first. @throws RedisUnavailableError */
export async function readPending(
  link: RedisLink,
  saleId: string,
  afterSeq: number,
  limit: number,
): Promise<{ requestId: string; seq: number }[]> {
  const flat = await link.run((client) =>
    client.zrange(saleKeys(saleId).pending, `(${afterSeq}`, "+inf", "BYSCORE", "LIMIT", 0, limit, "WITHSCORES"),
  );
  const pending: { requestId: string; seq: number }[] = [];
  for (let at = 0; at < flat.length; at += 2) pending.push({ requestId: flat[at] ?? "", seq: Number(flat[at + 1]) });
  return pending;
}

/** The value of a pipeline's reply, or null where its key is of a wrong type. Any other error is thrown. */
function unlessDamaged<Value>(reply: [Error | null, unknown] | undefined): Value | null {
  const [error, value] = reply ?? [new Error("no reply"), null];
  if (error && !error.message.startsWith("WRONGTYPE")) throw error;
  return error ? null : (value as Value);
}

/** The requestId of a buyer's live reservation in a sale, or null. @throws RedisUnavailableError */
export function readHolder(link: RedisLink, saleId: string, buyerId: string): Promise<string | null> {
  return link.run((client) => client.hget(saleKeys(saleId).holders, buyerId));
}

/** Whether there is a key of a request at all, whatever its contents. @throws RedisUnavailableError */
export function hasRequestKey(link: RedisLink, saleId: string, requestId: string): Promise<boolean> {
  return link.run(async (client) => (await client.exists(saleKeys(saleId).request(requestId))) === 1);
}
