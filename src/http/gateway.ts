/** The GraphQL server itself: one Yoga instance, whose parse, validate, execute and subscribe all transports share. */
import { createYoga, type YogaServerInstance } from "graphql-yoga";
import type { Config } from "../config.js";
import { createContext, type GraphQLContext, type GraphQLDeps, type RequestScope } from "../graphql/context.js";
import { toClientError } from "../graphql/errors.js";
import { createLoaders } from "../graphql/loaders.js";
import { schema } from "../graphql/schema.js";
import type { Logger } from "../observability/logger.js";
import { useClientErrors } from "./client-errors.js";
import { type OpenSubscriptions, trackSubscriptions } from "./open-subscriptions.js";
import { corsFor } from "./origins.js";
import { useStrictRequests } from "./request-body.js";

export const GRAPHQL_PATH = "/graphql";

/** The largest request of any transport, in bytes. */
export const MAX_REQUEST_BYTES = 128 * 1024;

export interface GatewayResources extends GraphQLDeps {
  readonly config: Config;
  readonly log: Logger;
  readonly maskBuyer: (buyerId: string) => string;
}

export interface Gateway {
  readonly yoga: YogaServerInstance<RequestScope, GraphQLContext>;
  readonly subscriptions: OpenSubscriptions;
}

/** GraphQL over the given resources; it listens nowhere by itself. */
export function createGateway(resources: GatewayResources): Gateway {
  const { config, log } = resources;
  const subscriptions = trackSubscriptions(resources.metrics.subscriptions);
  const { maskBuyer } = resources;
  const shared = { deps: resources, loaders: createLoaders(resources), maskBuyer };

  const yoga = createYoga<RequestScope, GraphQLContext>({
    schema,
    graphqlEndpoint: GRAPHQL_PATH,
    context: (scope) => createContext(scope, shared),
    plugins: [useStrictRequests(), useClientErrors(), subscriptions.plugin],
    // A net below the plugins, for what fails before there is a request to name.
    maskedErrors: { maskError: (error) => toClientError(error, log) },
    logging: false,
    multipart: false,
    batching: false,
    maxRequestBodySize: MAX_REQUEST_BYTES,
    cors: (request) => corsFor(request.headers.get("origin"), config.CORS_ORIGINS),
    landingPage: false,
    // It is a page of its own, in front of this: explorer.ts.
    graphiql: false,
  });
  return { yoga, subscriptions };
}
