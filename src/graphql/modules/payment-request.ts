import { type PaymentRequest, requestPayment } from "../../operations/request-payment.js";
import { signedIn } from "../access.js";
import { builder } from "../builder.js";

/** A payment that waits for its buyer. */
const PaymentRequestType = builder.objectRef<PaymentRequest>("PaymentRequest").implement({
  fields: (t) => ({
    paymentRef: t.exposeString("paymentRef", { description: "the provider's name for the payment" }),
    url: t.exposeString("url", { description: "where the buyer pays" }),
    payBy: t.expose("payBy", { type: "DateTime", description: "when the order expires" }),
  }),
});

builder.mutationField("requestPayment", (t) =>
  t.field({
    type: PaymentRequestType,
    description:
      "begins the payment of one's own unpaid order at the payment provider; reservationUpdates says when it is PAID. An order that can't be paid any more is the error CONFLICT, a provider that doesn't answer SERVICE_UNAVAILABLE. May be asked again",
    args: { orderId: t.arg.id({ required: true }) },
    resolve: (_root, { orderId }, context) =>
      requestPayment(context.deps, { orderId, buyerId: signedIn(context).buyerId }),
  }),
);
