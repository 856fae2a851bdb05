/** What clients are told of a failure: a stable code and a text of ours, never an internal one. */
import {
  type ExecutionResult,
  type FormattedExecutionResult,
  GraphQLError,
  type GraphQLErrorExtensions,
  type GraphQLFormattedError,
} from "graphql";
import { isContention, isDatabaseUnavailable } from "../db/errors.js";
import { type ErrorCode, SluiceError, serviceUnavailable } from "../domain/errors.js";
import type { RequestLog } from "../observability/logger.js";
import { RedisUnavailableError } from "../redis/errors.js";

const MASKED = "Something went wrong.";

/** HTTP statuses of errors that refuse a whole request. An error of one field leaves the answer a 200 with data. */
const REQUEST_STATUS: Partial<Record<ErrorCode, number>> = {
  UNAUTHENTICATED: 401,
  FORBIDDEN: 403,
  RATE_LIMITED: 429,
  OVERLOADED: 503,
  SERVICE_UNAVAILABLE: 503,
};

/** An error passes several hooks on its way out; only the first translates, so that nothing is logged twice. */
const translated = new WeakSet<GraphQLError>();

/**
 * The error as a client may see it, on any transport. A SluiceError keeps code, message and retryAfterMs; what is wrong
 * with the request itself (parsing, validation, coercion) is BAD_USER_INPUT; a store that is away is
 * SERVICE_UNAVAILABLE; all else is logged and masked.
 */
export function toClientError(error: unknown, log: RequestLog): GraphQLError {
  const root = rootOf(error);
  // Wrapped once more on its way out, as graphql-ws does with what a stream rejects with, it is still the same error.
  if (root instanceof GraphQLError && translated.has(root)) return root;
  const result = translate(root, error instanceof GraphQLError ? error : undefined, log);
  translated.add(result);
  return result;
}

/** The error as it is sent where no Yoga strips the HTTP hints off it: over WebSocket. */
export function formatClientError(error: GraphQLError): GraphQLFormattedError {
  const { extensions, ...rest } = error.toJSON();
  const { http: _http, ...shown } = extensions ?? {};
  return { ...rest, extensions: shown };
}

/** A result as it is sent where no Yoga does it: over WebSocket, and by the fast lane. Its errors must be fit for clients. */
export function formatResult({
  errors,
  data,
  extensions,
}: { readonly [Part in keyof ExecutionResult]: ExecutionResult[Part] | undefined }): FormattedExecutionResult {
  return {
    ...(errors && { errors: errors.map(formatClientError) }),
    ...(data !== undefined && { data }),
    ...(extensions && { extensions }),
  };
}

function translate(failure: unknown, located: GraphQLError | undefined, log: RequestLog): GraphQLError {
  const root = isOutage(failure)
    ? serviceUnavailable("This can't be answered right now. Try again.", failure)
    : failure;
  const ofField = located?.path !== undefined;
  if (root instanceof SluiceError) {
    const { code, retryAfterMs } = root;
    // At debug: in an outage it is every request's, and the outage is reported where it is noticed.
    if (root.cause) log.debug({ err: root.cause, code }, "request refused");
    const status = REQUEST_STATUS[code];
    return rebuilt(located, root.message, {
      code,
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
      ...(ofField || status === undefined ? {} : { http: { status } }),
    });
  }
  if (located && root instanceof GraphQLError && isAboutRequest(located, root)) {
    // `spec`: 400 for application/graphql-response+json, 200 for the older application/json, as GraphQL over HTTP says.
    const http = located.extensions.http ?? (ofField ? undefined : { spec: true, status: 400 });
    return rebuilt(located, located.message, { code: "BAD_USER_INPUT", ...(http ? { http } : {}) });
  }
  log.error({ err: root, ...(located?.path ? { path: located.path.join(".") } : {}) }, "request failed");
  return rebuilt(located, MASKED, { code: "INTERNAL_SERVER_ERROR", ...(ofField ? {} : { http: { status: 500 } }) });
}

/** A store that is away, or whose rows others hold for too long, is no fault of ours, and no internal error: trying again helps. */
function isOutage(error: unknown): boolean {
  return error instanceof RedisUnavailableError || isDatabaseUnavailable(error) || isContention(error);
}

function rootOf(error: unknown): unknown {
  let root = error;
  while (root instanceof GraphQLError && root.originalError) root = root.originalError;
  return root;
}

/**
 * Whether a GraphQL error is about the request. While a field is executed, the executor's complaints about its arguments
 * point at the document; those about a value that a resolver returned (an integer too large, an unknown enum value)
 * don't: they are bugs of ours, and their texts quote internal values.
 */
function isAboutRequest(located: GraphQLError, root: GraphQLError): boolean {
  return located.path === undefined || (root.nodes !== undefined && root.nodes.length > 0);
}

function rebuilt(located: GraphQLError | undefined, message: string, extensions: GraphQLErrorExtensions): GraphQLError {
  return new GraphQLError(message, {
    nodes: located?.nodes ?? null,
    source: located?.source ?? null,
    positions: located?.positions ?? null,
    path: located?.path ?? null,
    extensions,
  });
}
