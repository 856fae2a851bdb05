import { readFileSync } from "node:fs";
import {
  buildSchema,
  type GraphQLArgument,
  type GraphQLInputField,
  type GraphQLSchema,
  isEnumType,
  isInputObjectType,
  isInterfaceType,
  isIntrospectionType,
  isObjectType,
  isSpecifiedScalarType,
} from "graphql";
import { describe, expect, it } from "vitest";
import { printedSchema, schema } from "../../src/graphql/schema.js";

const read = (path: string) => readFileSync(new URL(path, import.meta.url), "utf8");
const contract = shapesOf(buildSchema(read("contract.graphql")));
const printed = shapesOf(buildSchema(printedSchema()));

describe("the schema", () => {
  it("is committed as it is printed: else run npm run schema", () => {
    expect(read("../../src/graphql/schema.graphql")).toBe(printedSchema());
  });

  it("has what the contract has, with the same types, nullability, defaults and descriptions", () => {
    const promised = [...contract];
    expect(promised.length).toBeGreaterThan(150);
    const differing = promised
      .filter(([coordinate, shape]) => printed.get(coordinate) !== shape)
      .map(([coordinate, shape]) => ({ coordinate, contract: shape, code: printed.get(coordinate) ?? "absent" }));
    expect(differing).toEqual([]);
  });

  it("has the contract's root types", () => {
    const roots = [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()];
    expect(roots.map((root) => root?.name)).toEqual(["Query", "Mutation", "Subscription"]);
  });
});

/** Each type, field, argument and enum value by its schema coordinate, with all that clients can rely on as one text. */
function shapesOf(source: GraphQLSchema): Map<string, string> {
  const shapes = new Map<string, string>();
  const inputShape = ({ type, defaultValue, description }: GraphQLArgument | GraphQLInputField) =>
    JSON.stringify({ type: String(type), defaultValue, description });

  for (const type of Object.values(source.getTypeMap())) {
    if (isIntrospectionType(type) || isSpecifiedScalarType(type)) continue;
    const interfaces = isObjectType(type) || isInterfaceType(type) ? type.getInterfaces().map(String) : [];
    shapes.set(type.name, JSON.stringify({ kind: type.constructor.name, interfaces, description: type.description }));
    if (isEnumType(type)) {
      for (const { name, description } of type.getValues()) {
        shapes.set(`${type.name}.${name}`, JSON.stringify({ description }));
      }
    } else if (isInputObjectType(type)) {
      for (const field of Object.values(type.getFields())) shapes.set(`${type.name}.${field.name}`, inputShape(field));
    } else if (isObjectType(type) || isInterfaceType(type)) {
      for (const field of Object.values(type.getFields())) {
        const { name, description } = field;
        shapes.set(`${type.name}.${name}`, JSON.stringify({ type: String(field.type), description }));
        for (const arg of field.args) shapes.set(`${type.name}.${name}(${arg.name}:)`, inputShape(arg));
      }
    }
  }
  return shapes;
}
