import { isId } from "../../domain/ids.js";
import { cancelOrder } from "../../operations/cancel.js";
import { listOrders } from "../../operations/read-orders.js";
import { completeRefund, refundOrder } from "../../operations/refund.js";
import { signedIn } from "../access.js";
import { builder } from "../builder.js";
import { connectionOf, pageSize } from "../pagination.js";
import { decodeOrderCursor, OrderConnection, OrderStatusEnum, OrderType, orderPosition } from "./order.js";

builder.queryField("orders", (t) =>
  t.field({
    type: OrderConnection,
    description: "operator. A sale's orders, newest first, 100 at most a page",
    args: {
      saleId: t.arg.id({ required: true }),
      status: t.arg({ type: OrderStatusEnum }),
      first: t.arg.int({ required: true, defaultValue: 20 }),
      after: t.arg.string(),
    },
    resolve: async (_root, { saleId, status, first, after }, context) => {
      const query = { saleId, status: status ?? null, first: pageSize(first), after: decodeOrderCursor(after) };
      const page = isId(saleId) ? await listOrders(context.deps, query) : { rows: [], hasNextPage: false };
      return connectionOf(page, after, orderPosition);
    },
  }),
);

builder.mutationFields((t) => ({
  cancelOrderByOperator: t.field({
    type: OrderType,
    description: "operator. Anybody's unpaid order, with a reason for the audit log; else as cancelOrder",
    args: { orderId: t.arg.id({ required: true }), reason: t.arg.string({ required: true }) },
    resolve: (_root, { orderId, reason }, context) =>
      cancelOrder(context.deps, { orderId, reason, by: "operator", actor: signedIn(context).buyerId }),
  }),
  refundOrder: t.field({
    type: OrderType,
    description:
      "operator. Sets a paid order's units aside and puts its payment on refundsDue: give the money back, then completeRefund. A repeat returns the order",
    args: { orderId: t.arg.id({ required: true }), reason: t.arg.string({ required: true }) },
    resolve: (_root, args, context) => refundOrder(context.deps, { ...args, actor: signedIn(context).buyerId }),
  }),
  completeRefund: t.field({
    type: OrderType,
    description:
      "operator. The money was given back, under the provider's refundRef. With restock the units are on sale again, without they are written off. A repeat returns the order, another refundRef or restock is the error CONFLICT",
    args: {
      orderId: t.arg.id({ required: true }),
      refundRef: t.arg.string({ required: true }),
      restock: t.arg.boolean({ required: true }),
    },
    resolve: (_root, args, context) => completeRefund(context.deps, { ...args, actor: signedIn(context).buyerId }),
  }),
}));
