/** The part of Sluice's API that contenders need: names, types and statuses are the same, so that the same requests drive all. */
import SchemaBuilder from "@pothos/core";
import { GraphQLError } from "graphql";
import { parseUuid } from "../../src/domain/ids.js";
import { type Outcome, REFUSALS, type Reservation, type Reserve } from "./reservations.js";

export interface Context {
  readonly buyerId: string;
  readonly reserve: Reserve;
}

const builder = new SchemaBuilder<{
  Context: Context;
  DefaultFieldNullability: false;
  Scalars: { ID: { Input: string; Output: string }; UUID: { Input: string; Output: string } };
}>({ defaultFieldNullability: false });

builder.scalarType("UUID", {
  serialize: (value) => value,
  parseValue(value) {
    const uuid = typeof value === "string" ? parseUuid(value) : null;
    if (!uuid) throw new GraphQLError("UUID must look like 123e4567-e89b-42d3-a456-426614174000.");
    return uuid;
  },
});

const ReserveStatus = builder.enumType("ReserveStatus", {
  values: ["QUEUED", "PENDING", "DECIDED", "ALREADY_RESERVED", ...REFUSALS] as const,
});
const ReservationStatus = builder.enumType("ReservationStatus", {
  values: ["PENDING", "QUEUED", "SUCCESS"] as const,
});

const ReserveInput = builder.inputType("ReserveInput", {
  fields: (t) => ({
    saleId: t.id({ required: true }),
    itemId: t.id({ required: true }),
    quantity: t.int({ required: true, defaultValue: 1 }),
    requestId: t.field({ type: "UUID", required: true }),
  }),
});

const ReservationType = builder.objectRef<Reservation>("Reservation").implement({
  fields: (t) => ({
    requestId: t.expose("requestId", { type: "UUID" }),
    saleId: t.exposeID("saleId"),
    quantity: t.exposeInt("quantity"),
    status: t.expose("status", { type: ReservationStatus }),
    // None of them keeps a line in which a request has a place.
    ahead: t.int({ nullable: true, resolve: () => null }),
  }),
});

const ReservePayload = builder.objectRef<Outcome>("ReservePayload").implement({
  fields: (t) => ({
    status: t.expose("status", { type: ReserveStatus }),
    reservation: t.field({
      type: ReservationType,
      nullable: true,
      resolve: (outcome) => ("reservation" in outcome ? outcome.reservation : null),
    }),
    message: t.string({ resolve: ({ status }) => MESSAGES[status] }),
  }),
});

const MESSAGES: Record<Outcome["status"], string> = {
  QUEUED: "Your request is accepted and is waiting to become an order.",
  PENDING: "Your units are held. Send the same request again to learn more.",
  DECIDED: "This request has been decided.",
  ALREADY_RESERVED: "You already have a reservation in this sale.",
  SOLD_OUT: "This item is sold out.",
  INSUFFICIENT: "There are fewer left than you asked for.",
  LIMIT_EXCEEDED: "A buyer can't have so many.",
  NOT_STARTED: "The sale has not started yet.",
  PAUSED: "The sale is paused.",
  ENDED: "The sale has ended.",
  REQUEST_CONFLICT: "This requestId was used before, for something else.",
};

builder.queryType({ fields: (t) => ({ serverTime: t.string({ resolve: () => new Date().toISOString() }) }) });
builder.mutationType({
  fields: (t) => ({
    reserve: t.field({
      type: ReservePayload,
      args: { input: t.arg({ type: ReserveInput, required: true }) },
      resolve(_root, { input }, { reserve, buyerId }) {
        if (input.quantity < 1) {
          throw new GraphQLError("quantity must be 1 or more.", { extensions: { code: "BAD_USER_INPUT" } });
        }
        return reserve({ ...input, buyerId });
      },
    }),
  }),
});

export const schema = builder.toSchema();
