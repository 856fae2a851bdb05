import type { Offender } from "../../db/offenders.js";
import { badUserInput, notFound } from "../../domain/errors.js";
import { isId } from "../../domain/ids.js";
import { SECOND } from "../../domain/time.js";
import { checkSale, type Finding, type SaleCheck } from "../../operations/check-sale.js";
import { builder } from "../builder.js";

const InvariantEnum = builder.enumType("Invariant", {
  values: {
    S: { description: "an item's units add up: in its columns, by its orders, its movements and its money" },
    U: { description: "a buyer has one valid order, of no more units than one may have" },
    C: { description: "Redis offers what the database has promised to nobody" },
    T: { description: "a request that was answered QUEUED is decided in bounded time" },
  },
});

const OffenderType = builder.objectRef<Offender>("Offender").implement({
  fields: (t) => ({
    id: t.string({ description: "an item, a buyer or a request", resolve: ({ id }) => id }),
    expected: t.string({ resolve: ({ expected }) => String(expected) }),
    actual: t.string({ resolve: ({ actual }) => String(actual) }),
  }),
});

const FindingType = builder.objectRef<Finding>("Finding").implement({
  fields: (t) => ({
    invariant: t.expose("invariant", { type: InvariantEnum }),
    kind: t.exposeString("kind", { description: "a name for it, for metrics and code" }),
    what: t.exposeString("what", { description: "what is not as it must be, in words" }),
    count: t.exposeInt("count"),
    offenders: t.field({
      type: [OffenderType],
      description: "the first of them by id, 20 at most",
      resolve: ({ shown }) => [...shown],
    }),
  }),
});

const ItemCheckType = builder.objectRef<SaleCheck["items"][number]>("ItemCheck").implement({
  fields: (t) => ({
    itemId: t.exposeID("itemId"),
    initial: t.exposeInt("initial"),
    ordered: t.exposeInt("ordered", { description: "units of valid orders" }),
    offered: t.exposeInt("offered", { description: "units that Redis must be offering while nothing is in flight" }),
  }),
});

const InFlightType = builder.objectRef<SaleCheck["unfinished"]>("InFlight").implement({
  fields: (t) => ({
    undecided: t.exposeInt("undecided", { description: "requests without an outcome, by the database" }),
    parked: t.exposeInt("parked", { description: "those of them that wait for an operator" }),
    eventsNotApplied: t.exposeInt("eventsNotApplied", { description: "request events that Redis has yet to hear" }),
    pendingInRedis: t.exposeInt("pendingInRedis", { description: "requests in line, by Redis" }),
  }),
});

const SaleCheckType = builder.objectRef<SaleCheck>("SaleCheck").implement({
  fields: (t) => ({
    saleId: t.exposeID("saleId"),
    holds: t.boolean({ description: "nothing is wrong", resolve: ({ findings }) => findings.length === 0 }),
    findings: t.field({ type: [FindingType], resolve: ({ findings }) => [...findings] }),
    uncompared: t.exposeString("uncompared", {
      nullable: true,
      description:
        "why C could not be judged, null where it was: not_loaded, the sale is not in Redis; moving, what is in flight makes the two stores differ rightly: ask again",
    }),
    items: t.field({ type: [ItemCheckType], resolve: ({ items }) => [...items] }),
    inFlight: t.field({ type: InFlightType, resolve: ({ unfinished }) => unfinished }),
  }),
});

const BOUND_SECONDS_AT_MOST = 7 * 24 * 60 * 60;

builder.queryField("checkSale", (t) =>
  t.field({
    type: SaleCheckType,
    description:
      "operator. Compares what the stores say of a sale, and repairs nothing. T counts requests that have waited for longer than boundSeconds",
    args: { saleId: t.arg.id({ required: true }), boundSeconds: t.arg.int({ required: true, defaultValue: 60 }) },
    resolve: (_root, { saleId, boundSeconds }, context) => {
      if (!isId(saleId)) throw notFound("There is no such sale.");
      if (boundSeconds < 1 || boundSeconds > BOUND_SECONDS_AT_MOST) {
        throw badUserInput(`boundSeconds must be from 1 to ${BOUND_SECONDS_AT_MOST}.`);
      }
      return checkSale(context.deps, saleId, boundSeconds * SECOND);
    },
  }),
);
