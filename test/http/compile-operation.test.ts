import {
  buildSchema,
  type ExecutionResult,
  execute,
  type GraphQLScalarType,
  parse,
  printSchema,
  validate,
} from "graphql";
import { describe, expect, it } from "vitest";
import { formatClientError, toClientError } from "../../src/graphql/errors.js";
import { schema as ours } from "../../src/graphql/schema.js";
import { compileOperation } from "../../src/http/fast-lane/compile-operation.js";
import { answerAnything, anyOperation } from "./any-operation.js";

const OPERATIONS = 6_000;

const schema = answerAnything(buildSchema(printSchema(ours)));
for (const name of ["DateTime", "UUID"]) {
  const { serialize, parseValue, parseLiteral } = ours.getType(name) as GraphQLScalarType;
  Object.assign(schema.getType(name) as GraphQLScalarType, { serialize, parseValue, parseLiteral });
}

/**
 * As a client gets it. Of several fields whose errors make the same object null, executors name one, or more, as it comes:
 * those count once, as the object's.
 */
function seen({ data, errors = [] }: ExecutionResult) {
  const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
  const told = new Set(
    errors.map((error) => {
      const formatted = formatClientError(toClientError(error, log));
      const path = formatted.path ?? [];
      const nulled = path.findIndex((_name, at) => valueAt(data, path.slice(0, at)) === null);
      return JSON.stringify(nulled < 0 ? formatted : path.slice(0, nulled));
    }),
  );
  return JSON.parse(JSON.stringify({ data, errors: [...told].sort() }));
}

function valueAt(data: unknown, path: readonly (string | number)[]): unknown {
  return path.reduce((value, name) => (value as Record<string | number, unknown> | null)?.[name], data);
}

describe("an operation in compiled form", () => {
  it("answers what the ordinary executor answers, or leaves it to that", async () => {
    const counts = { compared: 0, withErrors: 0, left: 0, unfit: 0 };
    for (let seed = 0; seed < OPERATIONS; seed += 1) {
      const { query, variables } = anyOperation(schema, seed);
      const document = parse(query);
      if (validate(schema, document).length > 0) continue;
      const compiled = compileOperation(schema, document, undefined);
      if (!compiled) {
        counts.unfit += 1;
        continue;
      }
      const args = { schema, document, variableValues: variables, contextValue: {} };
      const own = await Promise.resolve(compiled(args));
      const ordinary = await Promise.resolve(execute(args));
      if (!own) {
        counts.left += 1;
        continue;
      }
      counts.compared += 1;
      if (ordinary.errors) counts.withErrors += 1;
      expect(seen(own), `seed ${seed}: ${query} ${JSON.stringify(variables)}`).toEqual(seen(ordinary));
    }
    // It compares what it is meant to compare.
    expect(counts.compared).toBeGreaterThan(800);
    expect(counts.withErrors).toBeGreaterThan(100);
    expect(counts.left).toBeGreaterThan(100);
    expect(counts.unfit).toBeGreaterThan(50);
  }, 120_000);
});
