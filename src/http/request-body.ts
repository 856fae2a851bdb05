import { GraphQLError, parse } from "graphql";
import type { Plugin } from "graphql-yoga";
import type { RequestScope } from "../graphql/context.js";
import { toClientError } from "../graphql/errors.js";

/** Introspection by GraphiQL has about 400; nested 5,000 levels deep, a document overflowed the stack. */
const MAX_TOKENS = 2_000;

/** Whether a body is announced as JSON, from its Content-Type. */
export function isJson(contentType: string | null | undefined): boolean {
  return JSON_BODY.test(contentType ?? "");
}

const JSON_BODY = /^application\/(graphql\+)?json\s*(;|,|$)/;

/**
 * What may be in a request: POST takes JSON only. Browsers send form and text bodies across origins without asking, JSON
 * they don't; so no page can make its visitors' browsers mutate anything.
 */
export function useStrictRequests(): Plugin<object, RequestScope> {
  return {
    onRequestParse: ({ request, requestParser, setRequestParser, serverContext }) => {
      if (request.method === "POST" && !isJson(request.headers.get("content-type"))) {
        throw badRequest("Send the request as application/json.", 415);
      }
      if (!requestParser) return;
      setRequestParser(async (req) => {
        try {
          return await requestParser(req);
        } catch (error) {
          throw toClientError(unreadable(error), serverContext.log);
        }
      });
    },
    onParse: ({ setParseFn }) => {
      setParseFn((source, options) => parse(source, { ...options, maxTokens: MAX_TOKENS }));
    },
  };
}

/** What can't be read is 400 whatever the client accepts. Yoga leaves broken JSON in a query string a SyntaxError. */
function unreadable(error: unknown): unknown {
  if (error instanceof SyntaxError) return badRequest("The query string can't be read.", 400);
  if (error instanceof GraphQLError) return badRequest(error.message, error.extensions.http?.status ?? 400);
  return error;
}

function badRequest(message: string, status: number): GraphQLError {
  return new GraphQLError(message, { extensions: { http: { status } } });
}
