/** The GraphQL server itself: one Yoga instance, whose parse, validate, execute and subscribe all transports share. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { GraphQLError } from "graphql";
import { createYoga, type YogaServerInstance } from "graphql-yoga";
import type { Config } from "../config.js";
import { createContext, type GraphQLContext, type GraphQLDeps, type RequestScope } from "../graphql/context.js";
import { formatClientError, toClientError } from "../graphql/errors.js";
import { createLoaders } from "../graphql/loaders.js";
import { schema } from "../graphql/schema.js";
import type { Logger } from "../observability/logger.js";
import { useClientErrors } from "./client-errors.js";
import { useCompiledOperations } from "./fast-lane/compiled-operations.js";
import { createFastLane } from "./fast-lane/fast-lane.js";
import { type OpenSubscriptions, trackSubscriptions } from "./open-subscriptions.js";
import { corsFor, corsHeaders } from "./origins.js";
import { readBody } from "./read-body.js";
import { refuseUnread } from "./refuse-unread.js";
import { isJson, useStrictRequests } from "./request-body.js";

export const GRAPHQL_PATH = "/graphql";

/** The largest request of any transport, in bytes. */
export const MAX_REQUEST_BYTES = 128 * 1024;

export interface GatewayResources extends GraphQLDeps {
  readonly config: Config;
  readonly log: Logger;
  readonly maskBuyer: (buyerId: string) => string;
}

type Yoga = YogaServerInstance<RequestScope, GraphQLContext>;

export interface Gateway {
  readonly yoga: Yoga;
  readonly subscriptions: OpenSubscriptions;
  /** Answers one request over HTTP. */
  handle(req: IncomingMessage, res: ServerResponse, scope: RequestScope): Promise<void>;
}

/** GraphQL over the given resources; it listens nowhere by itself. */
export function createGateway(resources: GatewayResources): Gateway {
  const { config, log } = resources;
  const subscriptions = trackSubscriptions(resources.metrics.subscriptions);
  const { maskBuyer, metrics } = resources;
  const shared = { deps: resources, loaders: createLoaders(resources), maskBuyer };
  const lane = createFastLane({ yoga: () => yoga, allowedOrigins: config.CORS_ORIGINS });

  const yoga: Yoga = createYoga<RequestScope, GraphQLContext>({
    schema,
    graphqlEndpoint: GRAPHQL_PATH,
    context: (scope) => createContext(scope, shared),
    plugins: [useStrictRequests(), useCompiledOperations(), lane.plugin, useClientErrors(), subscriptions.plugin],
    // A net below the plugins, for what fails before there is a request to name.
    maskedErrors: { maskError: (error) => toClientError(error, log) },
    logging: false,
    multipart: false,
    batching: false,
    // Bodies are read in front of it, below: here it would cost as much as all the rest of a small request.
    maxRequestBodySize: false,
    cors: (request) => corsFor(request.headers.get("origin"), config.CORS_ORIGINS),
    landingPage: false,
    // It is a page of its own, in front of this: explorer.ts.
    graphiql: false,
  });

  return {
    yoga,
    subscriptions,
    async handle(req, res, scope) {
      // The bodies of others are not read at all: they are refused for their kind.
      if (req.method !== "POST" || !isJson(req.headers["content-type"])) {
        metrics.graphqlRequests.inc(FULL);
        return void (await yoga.handle(req, res, scope));
      }
      const body = await readBody(req, MAX_REQUEST_BYTES);
      if (body.kind === "gone") return;
      if (body.kind === "tooLarge") return refuseTooLarge(req, res, scope, config.CORS_ORIGINS);
      if (req.url === GRAPHQL_PATH && (await lane.answer(req, res, scope, body.bytes))) {
        metrics.graphqlRequests.inc(FAST);
        return;
      }
      metrics.graphqlRequests.inc(FULL);
      await yoga.handle(Object.assign(req, { body: new ReadBody(body.bytes) }), res, scope);
    },
  };
}

const FAST = { lane: "fast" };
const FULL = { lane: "full" };

/** A body that was read already, as Yoga takes it in place of the request's own. */
class ReadBody {
  constructor(readonly bytes: Buffer) {}

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer> {
    yield this.bytes;
  }
}

async function refuseTooLarge(
  req: IncomingMessage,
  res: ServerResponse,
  { log }: RequestScope,
  allowedOrigins: readonly string[],
): Promise<void> {
  const error = new GraphQLError(`The request is larger than ${MAX_REQUEST_BYTES / 1024} KB.`);
  for (const [name, value] of Object.entries(corsHeaders(req.headers.origin, allowedOrigins)))
    res.setHeader(name, value);
  await refuseUnread(req, res, { errors: [formatClientError(toClientError(error, log))] });
}
