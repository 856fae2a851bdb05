import { isId, orderIdOf, parseOrderId, parseUuid } from "../../domain/ids.js";
import type { Order } from "../../domain/model.js";
import { ORDER_STATUSES } from "../../domain/stages.js";
import { listOrders } from "../../operations/read-orders.js";
import { ownOrNull, signedIn } from "../access.js";
import { builder } from "../builder.js";
import { type Connection, connectionOf, decodeCursor, pageSize } from "../pagination.js";
import { PageInfo } from "./page.js";
import { itemNamed, SaleItem } from "./sale-item.js";

const OrderStatusEnum = builder.enumType("OrderStatus", { values: ORDER_STATUSES });

/** What a reservation has become in the database. */
export const OrderType = builder.objectRef<Order>("Order").implement({
  fields: (t) => ({
    id: t.id({
      description: "<saleId>.<requestId>",
      resolve: ({ saleId, requestId }) => orderIdOf(saleId, requestId),
    }),
    saleId: t.exposeID("saleId"),
    requestId: t.expose("requestId", { type: "UUID" }),
    item: t.field({ type: SaleItem, resolve: (order, _args, context) => itemNamed(order, context) }),
    quantity: t.exposeInt("quantity"),
    totalMinor: t.exposeInt("totalMinor"),
    currency: t.exposeString("currency"),
    status: t.expose("status", { type: OrderStatusEnum }),
    createdAt: t.expose("createdAt", { type: "DateTime" }),
    payBy: t.expose("payBy", { type: "DateTime" }),
    paidAt: t.expose("paidAt", { type: "DateTime", nullable: true }),
  }),
});

const OrderEdge = builder.objectRef<{ cursor: string; node: Order }>("OrderEdge").implement({
  fields: (t) => ({
    cursor: t.exposeString("cursor"),
    node: t.expose("node", { type: OrderType }),
  }),
});

const OrderConnection = builder.objectRef<Connection<Order>>("OrderConnection").implement({
  fields: (t) => ({
    edges: t.field({ type: [OrderEdge], resolve: ({ edges }) => edges }),
    pageInfo: t.field({ type: PageInfo, resolve: ({ pageInfo }) => pageInfo }),
  }),
});

builder.queryFields((t) => ({
  order: t.field({
    type: OrderType,
    nullable: true,
    args: { id: t.arg.id({ required: true }) },
    resolve: async (_root, { id }, context) => {
      const key = parseOrderId(id);
      return key && ownOrNull(context, await context.loaders.order.load(key));
    },
  }),
  myOrders: t.field({
    type: OrderConnection,
    args: { first: t.arg.int({ required: true, defaultValue: 20 }), after: t.arg.string() },
    resolve: async (_root, { first, after }, context) => {
      const position = decodeCursor(after, [isId, isRequestId]);
      const [saleId = "", requestId = ""] = position?.key ?? [];
      const page = await listOrders(context.deps, {
        buyerId: signedIn(context).buyerId,
        first: pageSize(first),
        after: position && { createdAt: position.createdAt, saleId, requestId },
      });
      return connectionOf(page, after, (order) => ({
        createdAt: order.createdAt,
        key: [order.saleId, order.requestId],
      }));
    },
  }),
}));

function isRequestId(text: string): boolean {
  return parseUuid(text) === text;
}
