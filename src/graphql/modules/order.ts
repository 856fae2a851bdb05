import { isId, isRequestId, orderIdOf, parseOrderId } from "../../domain/ids.js";
import type { Order } from "../../domain/model.js";
import { ORDER_STATUSES } from "../../domain/stages.js";
import { cancelOrder } from "../../operations/cancel.js";
import { listOrders } from "../../operations/read-orders.js";
import { ownOrNull, seesAll, signedIn } from "../access.js";
import { builder } from "../builder.js";
import { connectionOf, decodeCursor, pageSize } from "../pagination.js";
import { connectionType } from "./page.js";
import { itemNamed, SaleItem } from "./sale-item.js";

export const OrderStatusEnum = builder.enumType("OrderStatus", { values: ORDER_STATUSES });

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
    buyerId: t.id({
      nullable: true,
      description: "for operators; null for everybody else",
      resolve: ({ buyerId }, _args, context) => (seesAll(context) ? buyerId : null),
    }),
    paymentRef: t.string({
      nullable: true,
      description: "the payment that paid it, for operators; null for everybody else",
      resolve: ({ paymentRef }, _args, context) => (seesAll(context) ? paymentRef : null),
    }),
  }),
});

export const OrderConnection = connectionType("Order", OrderType);

/** Where an order stands in a list of orders. */
export const orderPosition = (order: Order) => ({ createdAt: order.createdAt, key: [order.saleId, order.requestId] });

/** The position that a cursor of such a list stands for. */
export function decodeOrderCursor(after: string | null | undefined) {
  const position = decodeCursor(after, [isId, isRequestId]);
  const [saleId = "", requestId = ""] = position?.key ?? [];
  return position && { createdAt: position.createdAt, saleId, requestId };
}

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
      const page = await listOrders(context.deps, {
        buyerId: signedIn(context).buyerId,
        first: pageSize(first),
        after: decodeOrderCursor(after),
      });
      return connectionOf(page, after, orderPosition);
    },
  }),
}));

builder.mutationField("cancelOrder", (t) =>
  t.field({
    type: OrderType,
    description: "unpaid orders only: a repeat returns the cancelled order, a paid one is the error CONFLICT",
    args: { orderId: t.arg.id({ required: true }) },
    resolve: (_root, { orderId }, context) =>
      cancelOrder(context.deps, { orderId, by: "buyer", buyerId: signedIn(context).buyerId }),
  }),
);
