import { handleStreamOrSingleExecutionResult, type Plugin } from "graphql-yoga";
import type { GraphQLContext } from "../graphql/context.js";
import { toClientError } from "../graphql/errors.js";

/**
 * Translates every error of validation and execution for clients, over all transports. It stands before Yoga's own
 * masking, which doesn't know the request and so couldn't log the error with the request's id.
 */
export function useClientErrors(): Plugin<GraphQLContext> {
  const clean = ({ log }: GraphQLContext, errors: readonly unknown[]) =>
    errors.map((error) => toClientError(error, log));

  return {
    onValidate: ({ context }) => {
      return ({ valid, result, setResult }) => {
        if (!valid) setResult(clean(context, result));
      };
    },
    onExecute: ({ args }) => ({
      onExecuteDone: (payload) =>
        handleStreamOrSingleExecutionResult(payload, ({ result, setResult }) => {
          if (result.errors) setResult({ ...result, errors: clean(args.contextValue, result.errors) });
        }),
    }),
    onSubscribe: ({ args }) => ({
      onSubscribeResult: (payload) =>
        handleStreamOrSingleExecutionResult(payload, ({ result, setResult }) => {
          if (result.errors) setResult({ ...result, errors: clean(args.contextValue, result.errors) });
        }),
      onSubscribeError: ({ error, setError }) => setError(toClientError(error, args.contextValue.log)),
    }),
  };
}
