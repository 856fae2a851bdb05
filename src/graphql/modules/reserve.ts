import { admit } from "../../admission/admit.js";
import type { ReserveOutcome } from "../../operations/reserve.js";
import { signedIn } from "../access.js";
import { builder } from "../builder.js";
import { fitInt } from "../scalars.js";
import { ReservationType } from "./reservation.js";

const ReserveStatusEnum = builder.enumType("ReserveStatus", {
  description: "What one call of reserve came to. These are answers, never GraphQL errors.",
  values: {
    QUEUED: {
      description:
        "accepted: stock is held and the request is durable; it will end in SUCCESS or in a stated failure. Repeats get QUEUED while undecided",
    },
    PENDING: {
      description:
        "stock is held, but making it durable could not be confirmed in time: send the same request again to learn more",
    },
    DECIDED: { description: "a repeat of a request that has been decided: read `reservation`" },
    SOLD_OUT: {},
    INSUFFICIENT: { description: "some units are left, fewer than asked for" },
    ALREADY_RESERVED: {
      description:
        "the buyer already has a live reservation or valid order in this sale, made by another request: `reservation` is that one",
    },
    LIMIT_EXCEEDED: { description: "quantity above maxPerBuyer" },
    NOT_STARTED: {},
    ENDED: {},
    PAUSED: {},
    REQUEST_CONFLICT: {
      description: "this requestId was used before in this sale, by another buyer or for another item or quantity",
    },
    BUSY: { description: "the bounded backlog is full" },
  },
});

const ReserveInput = builder.inputType("ReserveInput", {
  fields: (t) => ({
    saleId: t.id({ required: true }),
    itemId: t.id({ required: true }),
    quantity: t.int({ required: true, defaultValue: 1 }),
    requestId: t.field({
      type: "UUID",
      required: true,
      description: "made once by the client for one intention to buy, and sent again on every retry",
    }),
  }),
});

const ReservePayload = builder.objectRef<ReserveOutcome>("ReservePayload").implement({
  fields: (t) => ({
    status: t.field({ type: ReserveStatusEnum, resolve: ({ kind }) => STATUS[kind] }),
    reservation: t.field({
      type: ReservationType,
      nullable: true,
      description: "set for QUEUED, PENDING, DECIDED and ALREADY_RESERVED",
      resolve: (outcome) => ("reservation" in outcome ? outcome.reservation : null),
    }),
    message: t.string({ resolve: messageOf }),
    retryAfterMs: t.int({
      nullable: true,
      description: "set where trying again later makes sense, NOT_STARTED included",
      resolve: retryAfterMsOf,
    }),
  }),
});

builder.mutationField("reserve", (t) =>
  t.field({
    type: ReservePayload,
    args: { input: t.arg({ type: ReserveInput, required: true }) },
    resolve: (_root, { input }, context) => admit(context.deps, { ...input, buyerId: signedIn(context).buyerId }),
  }),
);

const STATUS = {
  queued: "QUEUED",
  pending: "PENDING",
  decided: "DECIDED",
  sold_out: "SOLD_OUT",
  insufficient: "INSUFFICIENT",
  already_reserved: "ALREADY_RESERVED",
  limit_exceeded: "LIMIT_EXCEEDED",
  not_started: "NOT_STARTED",
  ended: "ENDED",
  paused: "PAUSED",
  request_conflict: "REQUEST_CONFLICT",
  busy: "BUSY",
} as const satisfies Record<ReserveOutcome["kind"], string>;

function messageOf(outcome: ReserveOutcome): string {
  switch (outcome.kind) {
    case "queued":
      return "Your request is accepted and is waiting to become an order.";
    case "pending":
      return "Your units are held. Send the same request again to learn more.";
    case "decided":
      return "This request has been decided.";
    case "already_reserved":
      return "You already have a reservation in this sale.";
    case "sold_out":
      return "This item is sold out.";
    case "insufficient":
      return `Only ${outcome.remaining} left.`;
    case "limit_exceeded":
      return `A buyer can have ${outcome.maxPerBuyer} at most.`;
    case "not_started":
      return "The sale has not started yet.";
    case "ended":
      return "The sale has ended.";
    case "paused":
      return "The sale is paused.";
    case "request_conflict":
      return "This requestId was used before, for something else.";
    case "busy":
      return "Too many requests are waiting. Try again in a moment.";
  }
}

function retryAfterMsOf(outcome: ReserveOutcome): number | null {
  const wait = "retryAfterMs" in outcome ? outcome.retryAfterMs : undefined;
  return wait === undefined ? null : fitInt(Math.ceil(wait));
}
