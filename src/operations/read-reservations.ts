import type { Database } from "../db/client.js";
import { isDatabaseUnavailable } from "../db/errors.js";
import { findLatestRequestId, findRequests, type RequestRow } from "../db/reservations.js";
import type { RequestKey, Reservation } from "../domain/model.js";
import { stageOf, UNDECIDED } from "../domain/stages.js";
import { RedisUnavailableError } from "../redis/errors.js";
import type { RedisLink } from "../redis/link.js";
import { type RequestInRedis, readHolder, readRequestsInRedis, readSalesInRedis } from "../redis/read-sale.js";
import { reservationOf } from "./reserve-outcome.js";

export interface ReadReservationsDeps {
  readonly reads: Database;
  readonly redis: RedisLink;
}

/**
 * Reads reservations with their orders, in the order of the keys; null for what isn't there. The database leads; Redis
 * adds what was accepted and is not journaled yet, and the place in line. Without Redis those are left out; without the
 * database Redis alone tells what it knows, and the orders are left unread.
 *
 * @throws a database error where only the database could tell
 */
export async function readReservations(
  deps: ReadReservationsDeps,
  keys: readonly RequestKey[],
): Promise<(Reservation | null)[]> {
  if (keys.length === 0) return [];
  const [rows, inRedis] = await Promise.all([
    findRequests(deps.reads, keys).catch((error: Error) => error),
    readFromRedis(deps, keys),
  ]);
  if (rows instanceof Error && (!isDatabaseUnavailable(rows) || inRedis.includes(null))) throw rows;
  return keys.map((key, at) => {
    const row = rows instanceof Error ? null : rows[at];
    const live = inRedis[at] ?? null;
    if (row) return fromRow(row, live);
    // Its row may have been written since the database was read: Redis is believed whatever it says.
    return live ? fromRedis(key.saleId, live) : null;
  });
}

/** A buyer's latest reservation in a sale, or null: the one he holds, else the last one that was journaled. */
export async function readLatestReservation(
  deps: ReadReservationsDeps,
  key: { readonly saleId: string; readonly buyerId: string },
): Promise<Reservation | null> {
  const [journaled, held] = await Promise.all([
    findLatestRequestId(deps.reads, key.saleId, key.buyerId),
    readHolder(deps.redis, key.saleId, key.buyerId).catch(withoutRedis(null)),
  ]);
  const candidates = [...new Set([journaled, held])].filter((requestId) => requestId !== null);
  const found = await readReservations(
    deps,
    candidates.map((requestId) => ({ saleId: key.saleId, requestId })),
  );
  return found
    .filter((reservation) => reservation?.buyerId === key.buyerId)
    .reduce((latest, next) => (latest && next && latest.createdAt >= next.createdAt ? latest : next), null);
}

async function readFromRedis(
  deps: ReadReservationsDeps,
  keys: readonly RequestKey[],
): Promise<(RequestInRedis | null)[]> {
  try {
    const saleIds = [...new Set(keys.map((key) => key.saleId))];
    const [requests, sales] = await Promise.all([
      readRequestsInRedis(deps.redis, keys),
      readSalesInRedis(deps.redis, saleIds),
    ]);
    // What an older loading left behind is not known any more.
    const epochs = new Map(saleIds.map((saleId, at) => [saleId, sales[at]?.epoch]));
    return requests.map((request, at) => (request?.epoch === epochs.get(keys[at]?.saleId ?? "") ? request : null));
  } catch (error) {
    return withoutRedis(keys.map(() => null))(error);
  }
}

function withoutRedis<Value>(value: Value): (error: unknown) => Value {
  return (error) => {
    if (error instanceof RedisUnavailableError) return value;
    throw error;
  };
}

function fromRow(row: RequestRow, live: RequestInRedis | null): Reservation {
  const stage = stageOf(row.outcome, row.order?.status ?? null);
  const { saleId, requestId, buyerId, itemId, quantity } = row;
  return {
    saleId,
    requestId,
    buyerId,
    itemId,
    quantity,
    stage,
    reason: row.reason,
    ahead: UNDECIDED.has(stage) ? (live?.ahead ?? null) : null,
    createdAt: row.acceptedAt,
    updatedAt: row.order?.updatedAt ?? row.decidedAt ?? row.acceptedAt,
    order: row.order,
  };
}

function fromRedis(saleId: string, live: RequestInRedis): Reservation {
  return reservationOf({ saleId, ...live }, { ...live, at: live.acceptedAt });
}
