import { STAGES, type Stage } from "../../domain/stages.js";
import { type RequestTrace, type TraceEntry, traceRequest } from "../../operations/trace-request.js";
import { builder } from "../builder.js";

const RequestStageEnum = builder.enumType("RequestStage", {
  description: "how far a request has come, its reservation and its order in one word",
  values: Object.keys(STAGES) as Stage[],
});

const TraceSourceEnum = builder.enumType("TraceSource", {
  values: {
    REDIS: { description: "the decision, and the line" },
    TABLE: { description: "its row in the database" },
    QUEUE: { description: "its job" },
    ORDER: {},
    STOCK: { description: "movements of its units" },
    EVENT: { description: "what is to be carried to Redis" },
    PAYMENT: {},
    DEAD_LETTER: {},
    AUDIT: { description: "what operators did to it" },
  } satisfies Record<TraceEntry["source"], object>,
});

const TraceEntryType = builder.objectRef<TraceEntry>("TraceEntry").implement({
  fields: (t) => ({
    at: t.expose("at", { type: "DateTime", nullable: true, description: "null: how it stands now" }),
    source: t.expose("source", { type: TraceSourceEnum }),
    what: t.exposeString("what", { description: "what happened, or how it stands, in words" }),
    details: t.string({ description: "a JSON object", resolve: ({ details }) => JSON.stringify(details) }),
  }),
});

/** One request's whole life. */
const RequestTraceType = builder.objectRef<RequestTrace>("RequestTrace").implement({
  fields: (t) => ({
    saleId: t.exposeID("saleId"),
    requestId: t.expose("requestId", { type: "UUID" }),
    buyerId: t.exposeString("buyerId", { nullable: true, description: "null where no store can tell" }),
    stage: t.expose("stage", { type: RequestStageEnum, nullable: true, description: "null where no store can tell" }),
    summary: t.exposeString("summary", { description: "how it stands, in a sentence or two" }),
    entries: t.field({
      type: [TraceEntryType],
      description: "by time, and then, without one, how it stands in each store",
      resolve: ({ entries }) => [...entries],
    }),
    missing: t.stringList({
      description: "what should be there and isn't, and what could not be asked: a sentence each",
      resolve: ({ missing }) => [...missing],
    }),
  }),
});

builder.queryField("requestTrace", (t) =>
  t.field({
    type: RequestTraceType,
    nullable: true,
    description:
      "operator. One request's whole life over all the stores, also with one of them away; null where no store knows it",
    args: { saleId: t.arg.id({ required: true }), requestId: t.arg({ type: "UUID", required: true }) },
    resolve: (_root, { saleId, requestId }, { deps }) => traceRequest(deps, { saleId, requestId }),
  }),
);
