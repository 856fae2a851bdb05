import type { Order, Page, RequestKey } from "../domain/model.js";
import type { OrderStatus, ReservationReason } from "../domain/stages.js";
import type { Database } from "./client.js";
import { pageOf } from "./page.js";

/** A request's row with its order, as of one moment. */
export interface RequestRow {
  readonly saleId: string;
  readonly requestId: string;
  readonly buyerId: string;
  readonly itemId: string;
  readonly quantity: number;
  readonly acceptedAt: Date;
  readonly decidedAt: Date | null;
  readonly outcome: "ORDERED" | "SOLD_OUT" | "FAILED" | null;
  readonly reason: ReservationReason | null;
  readonly order: Order | null;
}

interface FlatRow extends Omit<RequestRow, "order"> {
  readonly totalMinor: number | null;
  readonly currency: string;
  readonly status: OrderStatus | null;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly payBy: Date;
  readonly paidAt: Date | null;
  readonly paymentRef: string | null;
}

/** Requests with their orders, in one statement, in the order of the keys; null for what isn't there. */
export async function findRequests(db: Database, keys: readonly RequestKey[]): Promise<(RequestRow | null)[]> {
  const rows = await db.$queryRaw<FlatRow[]>`
    SELECT r."saleId", r."requestId", r."buyerId", r."itemId", r.quantity, r."acceptedAt", r."decidedAt",
           r.outcome::text AS outcome, coalesce(o.reason, r.reason)::text AS reason,
           o."totalMinor", o.currency, o.status::text AS status, o."createdAt", o."updatedAt", o."payBy", o."paidAt",
           o."paymentRef"
    FROM unnest(${keys.map((key) => key.saleId)}::text[], ${keys.map((key) => key.requestId)}::uuid[]) AS k(sale, request)
    JOIN requests r ON r."saleId" = k.sale AND r."requestId" = k.request
    LEFT JOIN orders o ON o."saleId" = r."saleId" AND o."requestId" = r."requestId"`;
  const found = new Map(rows.map((row) => [`${row.saleId}.${row.requestId}`, row]));
  return keys.map((key) => {
    const row = found.get(`${key.saleId}.${key.requestId}`);
    return row ? unflatten(row) : null;
  });
}

/** The latest request of a buyer in a sale, or null. */
export async function findLatestRequestId(db: Database, saleId: string, buyerId: string): Promise<string | null> {
  const row = await db.request.findFirst({
    where: { saleId, buyerId },
    orderBy: [{ acceptedAt: "desc" }, { requestId: "desc" }],
    select: { requestId: true },
  });
  return row?.requestId ?? null;
}

/** Orders, in the order of the keys; null for what isn't there. */
export async function findOrders(db: Database, keys: readonly RequestKey[]): Promise<(Order | null)[]> {
  const rows = await findRequests(db, keys);
  return rows.map((row) => row?.order ?? null);
}

/** Of one buyer, or of one sale and in one status. */
export interface OrderListQuery {
  readonly buyerId?: string;
  readonly saleId?: string;
  readonly status?: OrderStatus | null;
  readonly first: number;
  /** the last order of the page before */
  readonly after: { readonly createdAt: Date; readonly saleId: string; readonly requestId: string } | null;
}

/** A page of orders, the newest first. */
export async function findOrderPage(db: Database, query: OrderListQuery): Promise<Page<Order>> {
  const { buyerId, saleId, status, first, after } = query;
  const rows = await db.order.findMany({
    where: {
      ...(buyerId !== undefined && { buyerId }),
      ...(saleId !== undefined && { saleId }),
      ...(status && { status }),
      ...(after && {
        OR: [
          { createdAt: { lt: after.createdAt } },
          { createdAt: after.createdAt, requestId: { lt: after.requestId } },
          { createdAt: after.createdAt, requestId: after.requestId, saleId: { lt: after.saleId } },
        ],
      }),
    },
    orderBy: [{ createdAt: "desc" }, { requestId: "desc" }, { saleId: "desc" }],
    take: first + 1,
    omit: { activeBuyerId: true, reason: true },
  });
  return pageOf(rows, first);
}

function unflatten(row: FlatRow): RequestRow {
  const { totalMinor, currency, status, createdAt, updatedAt, payBy, paidAt, paymentRef, ...request } = row;
  const { saleId, requestId, buyerId, itemId, quantity } = request;
  const order =
    status === null || totalMinor === null
      ? null
      : {
          saleId,
          requestId,
          buyerId,
          itemId,
          quantity,
          totalMinor,
          currency,
          status,
          createdAt,
          updatedAt,
          payBy,
          paidAt,
          paymentRef,
        };
  return { ...request, order };
}
