import {
  type DocumentNode,
  type ExecutionArgs,
  type ExecutionResult,
  GraphQLError,
  type GraphQLInputType,
  type GraphQLSchema,
  getNamedType,
  getOperationAST,
  isInputObjectType,
  isListType,
  isNonNullType,
  isSpecifiedScalarType,
  type OperationDefinitionNode,
  typeFromAST,
  visit,
} from "graphql";
import { compileQuery, isCompiledQuery } from "graphql-jit";

/** Executes one operation. Returns null where its variables are for the ordinary executor: then no resolver has run. */
export type CompiledOperation = (args: ExecutionArgs) => Promise<ExecutionResult> | ExecutionResult | null;

/**
 * Compiles a valid query or mutation to a function of its own, or returns null for one that the compiler does not execute
 * exactly as GraphQL.js does: those that look at the schema, have directives, have variables with defaults, or use
 * variables inside of literals.
 */
export function compileOperation(
  schema: GraphQLSchema,
  document: DocumentNode,
  operationName: string | undefined,
): CompiledOperation | null {
  const operation = getOperationAST(document, operationName);
  if (!operation || operation.operation === "subscription" || !isExact(document, operation)) return null;
  const compiled = compileQuery(schema, document, operationName);
  if (!isCompiledQuery(compiled)) return null;

  const variables = (operation.variableDefinitions ?? []).map(({ variable, type }) => {
    const inputType = typeFromAST(schema, type as never) as GraphQLInputType | undefined;
    return { name: variable.name.value, fill: inputType ? fillerOf(inputType) : null };
  });

  return ({ rootValue, contextValue, variableValues }) => {
    const filled: Record<string, unknown> = {};
    for (const { name, fill } of variables) {
      const value = variableValues?.[name];
      // It doesn't tell an absent variable from one that is null.
      if (value === undefined || value === null) return null;
      filled[name] = fill ? fill(value) : value;
    }
    const result = compiled.query(rootValue, contextValue, filled);
    if (isPromise(result)) return result.then((late) => withPositions(late, document));
    // Its own complaints about variables have other texts.
    return result.data === undefined ? null : withPositions(result, document);
  };
}

function isExact(document: DocumentNode, operation: OperationDefinitionNode): boolean {
  if (operation.variableDefinitions?.some(({ defaultValue }) => defaultValue)) return false;
  let exact = true;
  let literals = 0;
  const literal = {
    enter: () => {
      literals += 1;
    },
    leave: () => {
      literals -= 1;
    },
  };
  visit(document, {
    Field: ({ name: { value } }) => {
      if (value === "__schema" || value === "__type") exact = false;
    },
    // Of a field that stands there twice, it names the place that is skipped in errors too.
    Directive: () => {
      exact = false;
    },
    ObjectValue: literal,
    ListValue: literal,
    Variable: () => {
      if (literals > 0) exact = false;
    },
  });
  return exact;
}

type Filler = (value: unknown) => unknown;

/**
 * What puts the defaults of input fields into a value that leaves them out, which the compiler takes for an error; null
 * where nothing in the type has a default.
 */
function fillerOf(type: GraphQLInputType): Filler | null {
  const named = getNamedType(type);
  // Lists are for the ordinary executor to complain about: the compiler's answer then is an error.
  if (!isInputObjectType(named) || isListType(isNonNullType(type) ? type.ofType : type)) return null;
  const fillers = Object.values(named.getFields()).flatMap(({ name, type: fieldType, defaultValue }) => {
    const inner = fillerOf(fieldType);
    const plainDefault = isSpecifiedScalarType(getNamedType(fieldType)) ? defaultValue : undefined;
    return inner || plainDefault !== undefined ? [{ name, inner, plainDefault }] : [];
  });
  if (fillers.length === 0) return null;
  return (value) => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
    const filled: Record<string, unknown> = { ...value };
    for (const { name, inner, plainDefault } of fillers) {
      const own = Object.hasOwn(value, name) ? filled[name] : undefined;
      if (own === undefined) {
        if (plainDefault !== undefined) filled[name] = plainDefault;
      } else if (inner) filled[name] = inner(own);
    }
    return filled;
  };
}

/** The compiler's errors know lines and columns only; ours are made anew on their way out, from source and positions. */
function withPositions(result: ExecutionResult, document: DocumentNode): ExecutionResult {
  const source = document.loc?.source;
  if (!result.errors || !source) return result;
  const lines = source.body.split(/\r\n|[\n\r]/g);
  const offsets = [0];
  for (const line of lines) offsets.push((offsets.at(-1) ?? 0) + line.length + 1);
  const errors = result.errors.map(
    (error) =>
      new GraphQLError(error.message, {
        source,
        positions: (error.locations ?? []).map(({ line, column }) => (offsets[line - 1] ?? 0) + column - 1),
        path: error.path ?? null,
        originalError: error.originalError ?? null,
        extensions: error.extensions,
      }),
  );
  return { ...result, errors };
}

function isPromise<Value>(value: Promise<Value> | Value): value is Promise<Value> {
  return value instanceof Promise;
}
