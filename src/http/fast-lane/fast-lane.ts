/**
 * The fast lane: answers plain JSON POSTs of documents that have passed Yoga before, without Yoga's HTTP. What it leaves
 * out is work that would come out the same again (parsing, validation) and objects that nobody looks at (a Request, a
 * Response, streams for their bodies). Context, plugins, execution and masking are Yoga's own. Whatever is unusual about a
 * request is left to Yoga, and so is every request that it would refuse.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { ExecutionArgs, ExecutionResult } from "graphql";
import { isAsyncIterable, type Plugin, type YogaServerInstance } from "graphql-yoga";
import type { GraphQLContext, RequestScope } from "../../graphql/context.js";
import { formatResult, toClientError } from "../../graphql/errors.js";
import { corsHeaders } from "../origins.js";
import { type MediaType, mediaTypeFor } from "./media-type.js";
import { type Params, readParams } from "./params.js";
import { keepPassedDocuments } from "./passed-documents.js";

export interface FastLane {
  /** Learns from what Yoga executes. */
  readonly plugin: Plugin<GraphQLContext>;
  /** Answers a request whose body was read. Resolves with whether it did: if not, nothing was done and nothing was sent. */
  answer(req: IncomingMessage, res: ServerResponse, scope: RequestScope, body: Buffer): Promise<boolean>;
}

type Yoga = YogaServerInstance<RequestScope, GraphQLContext>;

export interface FastLaneOptions {
  readonly yoga: () => Yoga;
  readonly allowedOrigins: readonly string[];
}

export function createFastLane({ yoga, allowedOrigins }: FastLaneOptions): FastLane {
  const passed = keepPassedDocuments();

  return {
    plugin: {
      // What comes to be executed over HTTP has passed everything in front of that.
      onExecute: ({ args: { contextValue, document } }) => {
        if (isOfYogaHttp(contextValue)) passed.add(contextValue.principal, contextValue.params.query ?? "", document);
      },
    },

    async answer(req, res, scope, body) {
      const mediaType = mediaTypeFor(req.headers.accept);
      const params = mediaType && readParams(body);
      if (!mediaType || !params) return false;
      const result = await execute(yoga(), passed, scope, params);
      if (result && !res.closed) send(res, mediaType, result, corsHeaders(req.headers.origin, allowedOrigins));
      return result !== null;
    },
  };
}

/** The result, or null where the request is to go to Yoga: then no resolver has run. */
async function execute(
  yoga: Yoga,
  passed: ReturnType<typeof keepPassedDocuments>,
  scope: RequestScope,
  { query, operationName, variables }: Params,
): Promise<ExecutionResult | null> {
  // The context is made of what is handed over here; the scope must stay as it is for Yoga.
  const enveloped = yoga.getEnveloped({ ...scope });
  const contextValue = await contextOf(enveloped);
  if (!contextValue) return null;
  const document = passed.find(contextValue.principal, query, operationName);
  if (!document) return null;
  const args: ExecutionArgs = {
    schema: enveloped.schema,
    document,
    contextValue,
    variableValues: variables,
    operationName,
  };
  try {
    const result: unknown = await enveloped.execute(args);
    // Without data, no field was executed: its variables are not right.
    return isAsyncIterable(result) || !isResult(result) || result.data === undefined ? null : result;
  } catch (error) {
    // Not for Yoga to try again: what has failed may have been done.
    return { errors: [toClientError(error, contextValue.log)] };
  }
}

/** The context of a request, or null for one that has none: Yoga then says why. */
async function contextOf(enveloped: ReturnType<Yoga["getEnveloped"]>): Promise<GraphQLContext | null> {
  try {
    return await enveloped.contextFactory();
  } catch {
    return null;
  }
}

function isResult(value: unknown): value is ExecutionResult {
  return typeof value === "object" && value !== null;
}

interface OfYogaHttp extends GraphQLContext {
  readonly params: { readonly query?: string };
}

/** Yoga puts the request and its parameters into the context; over WebSocket there are none. */
function isOfYogaHttp(context: GraphQLContext): context is OfYogaHttp {
  return "request" in context && "params" in context;
}

function send(
  res: ServerResponse,
  mediaType: MediaType,
  result: ExecutionResult,
  cors: Readonly<Record<string, string>>,
): void {
  const text = JSON.stringify(formatResult(result));
  res.writeHead(result.data === undefined ? 500 : 200, {
    ...cors,
    "content-type": `${mediaType}; charset=utf-8`,
    "content-length": Buffer.byteLength(text),
  });
  res.end(text);
}
