import { type DocumentNode, type ExecutionArgs, type ExecutionResult, getOperationAST } from "graphql";
import type { Plugin } from "graphql-yoga";
import { LRUCache } from "lru-cache";
import { type CompiledOperation, compileOperation } from "./compile-operation.js";

/** Compiling takes milliseconds: worth it for what is asked again and again. */
const COMPILED_AFTER = 20;
const LONGEST_QUERY = 4_000;
const COMPILED_AT_MOST = 200;

interface Operation {
  executed: number;
  compiled: CompiledOperation | null;
}

/**
 * Executes what is asked again and again in compiled form, whichever way it came. The same document must come as the same
 * object each time, as Yoga's cache of parsed documents gives it.
 */
export function useCompiledOperations(): Plugin {
  const documents = new LRUCache<DocumentNode, Map<string, Operation>>({ max: COMPILED_AT_MOST });

  const operationOf = (document: DocumentNode, name: string) => {
    const known = documents.get(document)?.get(name);
    if (known) return known;
    const operation: Operation = { executed: 0, compiled: null };
    documents.set(document, (documents.get(document) ?? new Map<string, Operation>()).set(name, operation));
    return operation;
  };

  return {
    onExecute: ({ args, executeFn, setExecuteFn }) => {
      const { schema, document, operationName } = args;
      if ((document.loc?.end ?? Number.POSITIVE_INFINITY) > LONGEST_QUERY) return;
      // Clients may name any: only of those that there are something is kept.
      if (!getOperationAST(document, operationName)) return;
      const operation = operationOf(document, operationName ?? "");
      operation.executed += 1;
      if (operation.executed === COMPILED_AFTER) {
        operation.compiled = compileOperation(schema, document, operationName ?? undefined);
      }
      const { compiled } = operation;
      if (!compiled) return;
      setExecuteFn((given: ExecutionArgs): unknown => compiled(given) ?? (executeFn(given) as ExecutionResult));
    },
  };
}
