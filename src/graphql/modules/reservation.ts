import { notFound } from "../../domain/errors.js";
import { isId } from "../../domain/ids.js";
import type { Reservation } from "../../domain/model.js";
import { RESERVATION_REASONS, reasonText, STAGES } from "../../domain/stages.js";
import { readLatestReservation } from "../../operations/read-reservations.js";
import { watchReservation } from "../../operations/watch.js";
import { ownOrNull, seesAll, signedIn } from "../access.js";
import { builder } from "../builder.js";
import { OrderType } from "./order.js";
import { itemNamed, SaleItem } from "./sale-item.js";

const ReservationStatusEnum = builder.enumType("ReservationStatus", {
  description: "PENDING → QUEUED → SUCCESS → RELEASED, or SOLD_OUT or FAILED instead of SUCCESS.",
  values: {
    PENDING: {},
    QUEUED: {},
    SUCCESS: { description: "the order exists" },
    SOLD_OUT: { description: "accepted, yet the database had no stock left" },
    FAILED: { description: "could not become an order; its stock went back" },
    RELEASED: { description: "its order was cancelled, expired or refunded" },
  },
});

const ReservationReasonEnum = builder.enumType("ReservationReason", { values: RESERVATION_REASONS });

/** An accepted request. */
export const ReservationType = builder.objectRef<Reservation>("Reservation").implement({
  fields: (t) => ({
    requestId: t.expose("requestId", { type: "UUID" }),
    saleId: t.exposeID("saleId"),
    item: t.field({ type: SaleItem, resolve: (reservation, _args, context) => itemNamed(reservation, context) }),
    quantity: t.exposeInt("quantity"),
    status: t.field({ type: ReservationStatusEnum, resolve: ({ stage }) => STAGES[stage].status }),
    reasonCode: t.field({ type: ReservationReasonEnum, nullable: true, resolve: ({ reason }) => reason }),
    reason: t.string({
      nullable: true,
      description: "in words for a buyer; set with reasonCode",
      resolve: ({ reason }) => reason && reasonText(reason),
    }),
    ahead: t.exposeInt("ahead", {
      nullable: true,
      description: "accepted requests still in front of this one; null once decided",
    }),
    order: t.field({
      type: OrderType,
      nullable: true,
      resolve: ({ order, stage, saleId, requestId }, _args, { loaders }) => {
        if (order !== undefined) return order;
        return STAGES[stage].order === null ? null : loaders.order.load({ saleId, requestId });
      },
    }),
    version: t.int({
      description:
        "the rank of the state: later states have higher versions, also after Redis was lost; drop what is lower than what you have",
      resolve: ({ stage }) => STAGES[stage].rank,
    }),
    createdAt: t.expose("createdAt", { type: "DateTime" }),
    updatedAt: t.field({
      type: "DateTime",
      resolve: async (reservation, _args, { loaders }) => {
        if (reservation.order !== undefined) return reservation.updatedAt;
        // Told by Redis alone, which knows when it was accepted and not when it was decided.
        return ((await loaders.reservation.load(reservation)) ?? reservation).updatedAt;
      },
    }),
  }),
});

builder.queryFields((t) => ({
  reservation: t.field({
    type: ReservationType,
    nullable: true,
    description: "the buyer's own; null for others' and for what isn't there",
    args: { saleId: t.arg.id({ required: true }), requestId: t.arg({ type: "UUID", required: true }) },
    resolve: async (_root, key, context) =>
      isId(key.saleId) ? ownOrNull(context, await context.loaders.reservation.load(key)) : null,
  }),
  myReservation: t.field({
    type: ReservationType,
    nullable: true,
    description: "the buyer's latest in a sale, for a page that was reloaded and lost its requestId",
    args: { saleId: t.arg.id({ required: true }) },
    resolve: (_root, { saleId }, context) =>
      isId(saleId) ? readLatestReservation(context.deps, { saleId, buyerId: signedIn(context).buyerId }) : null,
  }),
}));

builder.subscriptionField("reservationUpdates", (t) =>
  t.field({
    type: ReservationType,
    description: [
      "First the present state, then every change. May be opened before reserve is called: then the first value comes when there is a reservation.",
      "Completes when there is nothing left to wait for: SOLD_OUT, FAILED, RELEASED, or SUCCESS with its order PAID. Safe to open again at any time.",
    ].join("\n"),
    args: { saleId: t.arg.id({ required: true }), requestId: t.arg({ type: "UUID", required: true }) },
    subscribe: (_root, { saleId, requestId }, context) => {
      if (!isId(saleId)) throw notFound("There is no such sale.");
      const buyerId = seesAll(context) ? null : signedIn(context).buyerId;
      return watchReservation(context.deps, { saleId, requestId, buyerId });
    },
    resolve: (reservation: Reservation) => reservation,
  }),
);
