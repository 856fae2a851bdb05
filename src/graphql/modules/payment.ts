import type { Payment } from "../../db/payments.js";
import { parseOrderId } from "../../domain/ids.js";
import { isReference } from "../../operations/check-input.js";
import { type PAYMENT_OUTCOMES, type PaymentAnswer, pay } from "../../operations/pay.js";
import { listDueRefunds } from "../../operations/read-payments.js";
import { refundPayment } from "../../operations/refund.js";
import { signedIn } from "../access.js";
import { builder } from "../builder.js";
import { connectionOf, decodeCursor, pageSize } from "../pagination.js";
import { OrderType } from "./order.js";
import { connectionType } from "./page.js";

const PaymentOutcomeEnum = builder.enumType("PaymentOutcome", {
  values: {
    PAID: {},
    ALREADY_PAID: { description: "the order was paid by this same paymentRef before" },
    REFUND_DUE: {
      description:
        "money for an order that can't be paid (unknown, expired, cancelled, paid by another reference): recorded, to be given back",
    },
    AMOUNT_MISMATCH: { description: "recorded, to be given back; the order stays as it was" },
  } satisfies Record<(typeof PAYMENT_OUTCOMES)[number], object>,
});

const PaymentResult = builder.objectRef<PaymentAnswer>("PaymentResult").implement({
  fields: (t) => ({
    outcome: t.expose("outcome", { type: PaymentOutcomeEnum }),
    order: t.expose("order", { type: OrderType, nullable: true, description: "null for an unknown order" }),
  }),
});

/** Money that was received. */
const PaymentType = builder.objectRef<Payment>("Payment").implement({
  fields: (t) => ({
    paymentRef: t.exposeString("paymentRef", { description: "the provider's name for it" }),
    orderId: t.exposeID("orderId", { description: "what the provider called the order, which may be unknown here" }),
    order: t.field({
      type: OrderType,
      nullable: true,
      description: "null for an unknown order",
      resolve: ({ orderId }, _args, { loaders }) => {
        const key = parseOrderId(orderId);
        return key && loaders.order.load(key);
      },
    }),
    amountMinor: t.exposeInt("amountMinor", { description: "in the currency's minor unit" }),
    outcome: t.field({
      type: PaymentOutcomeEnum,
      description: "what it came to: never ALREADY_PAID",
      resolve: ({ outcome }) => outcome,
    }),
    createdAt: t.expose("createdAt", { type: "DateTime" }),
    refundDueAt: t.expose("refundDueAt", {
      type: "DateTime",
      nullable: true,
      description: "null while it may be kept",
    }),
    refundRef: t.exposeString("refundRef", { nullable: true, description: "the provider's name for the refund" }),
    refundedAt: t.expose("refundedAt", { type: "DateTime", nullable: true }),
  }),
});

const PaymentConnection = connectionType("Payment", PaymentType);

builder.queryField("refundsDue", (t) =>
  t.field({
    type: PaymentConnection,
    description:
      "operator. Money that is to be given back, due the longest first, 100 at most a page: what could not buy (end it with refundPayment), and what paid orders that are to be refunded (end those with completeRefund)",
    args: { first: t.arg.int({ required: true, defaultValue: 20 }), after: t.arg.string() },
    resolve: async (_root, { first, after }, context) => {
      const position = decodeCursor(after, [isReference]);
      const page = await listDueRefunds(context.deps, {
        first: pageSize(first),
        after: position && { dueAt: position.createdAt, paymentRef: position.key[0] ?? "" },
      });
      return connectionOf(page, after, ({ refundDueAt, createdAt, paymentRef }) => ({
        createdAt: refundDueAt ?? createdAt,
        key: [paymentRef],
      }));
    },
  }),
);

builder.mutationFields((t) => ({
  confirmPayment: t.field({
    type: PaymentResult,
    description:
      "payments. Repeating a paymentRef that paid gives ALREADY_PAID, one that was refused its recorded outcome; the same paymentRef for another order or amount is the error CONFLICT",
    args: {
      orderId: t.arg.id({ required: true }),
      paymentRef: t.arg.string({ required: true }),
      amountMinor: t.arg.int({ required: true }),
    },
    resolve: (_root, args, context) => pay(context.deps, args),
  }),
  refundPayment: t.field({
    type: PaymentType,
    description:
      "operator. Money that could not buy was given back, under the provider's refundRef. A repeat returns the payment, another refundRef is the error CONFLICT",
    args: { paymentRef: t.arg.string({ required: true }), refundRef: t.arg.string({ required: true }) },
    resolve: (_root, args, context) => refundPayment(context.deps, { ...args, actor: signedIn(context).buyerId }),
  }),
}));
