/** Operations and answers made up from a schema, the same for the same seed. */
import { createHash } from "node:crypto";
import {
  type GraphQLEnumType,
  type GraphQLField,
  type GraphQLInputField,
  type GraphQLInputType,
  type GraphQLNamedType,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLSchema,
  getNamedType,
  getNullableType,
  isCompositeType,
  isEnumType,
  isInputObjectType,
  isListType,
  isNonNullType,
  isObjectType,
  isRequiredInputField,
} from "graphql";
import { SluiceError } from "../../src/domain/errors.js";

/** A number from 0 to 1 for each call, by a seed. */
export function dice(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export interface AnyOperation {
  readonly query: string;
  readonly variables: Record<string, unknown>;
}

/** A query or mutation that a client could send; its variables may be absent, null, or of a wrong type. */
export function anyOperation(schema: GraphQLSchema, seed: number): AnyOperation {
  const roll = dice(seed);
  const pick = <Value>(values: readonly Value[]): Value => values[Math.floor(roll() * values.length)] as Value;
  const definitions: string[] = [];
  const fragments: string[] = [];
  const variables: Record<string, unknown> = {};
  let names = 0;

  const variable = (type: GraphQLInputType): string => {
    names += 1;
    const name = `v${names}`;
    const wanted = roll() < 0.3 && isNonNullType(type) ? type.ofType : type;
    const withDefault = roll() < 0.1 && String(wanted) === "Int" ? " = 7" : "";
    definitions.push(`$${name}: ${roll() < 0.7 ? type : wanted}${withDefault}`);
    const how = roll();
    if (how < 0.05) variables[name] = null;
    else if (how < 0.1) variables[name] = pick<unknown>(["text", 5, 1.5, true, [], {}, [{ a: 1 }]]);
    else if (how < 0.9) variables[name] = valueFor(type);
    return `$${name}`;
  };

  const valueFor = (type: GraphQLInputType): unknown => {
    const nullable = getNullableType(type);
    if (!isNonNullType(type) && roll() < 0.15) return null;
    if (isListType(nullable))
      return roll() < 0.2 ? valueFor(nullable.ofType) : [1, 2].map(() => valueFor(nullable.ofType));
    if (isEnumType(nullable)) return roll() < 0.05 ? "NO_SUCH" : pick(nullable.getValues()).name;
    if (isInputObjectType(nullable)) {
      const given = Object.values(nullable.getFields()).filter(isGiven);
      const fields = given.map((field) => [field.name, valueFor(field.type)]);
      return Object.fromEntries(roll() < 0.04 ? [...fields, ["noSuchField", 1]] : fields);
    }
    return pick(VALUES[(nullable as GraphQLNamedType).name] ?? ["x"]);
  };
  const isGiven = (field: GraphQLInputField) => isRequiredInputField(field) || roll() < 0.6;

  const literal = (type: GraphQLInputType): string => {
    const nullable = getNullableType(type);
    if (roll() < 0.2) return variable(type);
    if (!isNonNullType(type) && roll() < 0.1) return "null";
    if (isListType(nullable)) return `[${literal(nullable.ofType)}]`;
    if (isEnumType(nullable)) return pick(nullable.getValues()).name;
    if (isInputObjectType(nullable)) {
      const given = Object.values(nullable.getFields()).filter(isGiven);
      return `{ ${given.map((field) => `${field.name}: ${literal(field.type)}`).join(", ")} }`;
    }
    return JSON.stringify(pick(VALUES[(nullable as GraphQLNamedType).name] ?? ["x"]));
  };

  const directive = (): string => {
    if (roll() > 0.04) return "";
    const condition = roll() < 0.5 ? variable(schema.getType("Boolean") as GraphQLInputType) : pick(["true", "false"]);
    return ` @${pick(["include", "skip"])}(if: ${condition})`;
  };

  const fieldOf = (field: GraphQLField<unknown, unknown>, depth: number): string => {
    const args = field.args
      .filter((arg) => (isNonNullType(arg.type) && arg.defaultValue === undefined) || roll() < 0.7)
      .map((arg) => `${arg.name}: ${roll() < 0.6 ? variable(arg.type) : literal(arg.type)}`);
    const alias = roll() < 0.2 ? `a${Math.floor(roll() * 100)}: ` : "";
    const named = getNamedType(field.type);
    const selection = isCompositeType(named) ? ` ${selectionOf(named as GraphQLObjectType, depth + 1)}` : "";
    return `${alias}${field.name}${args.length > 0 ? `(${args.join(", ")})` : ""}${directive()}${selection}`;
  };

  const selectionOf = (type: GraphQLObjectType, depth: number): string => {
    const fields = Object.values(type.getFields()).filter(
      ({ type: of }) => depth < 4 || !isCompositeType(getNamedType(of)),
    );
    const count = 1 + Math.floor(roll() * 4);
    const chosen = Array.from({ length: count }, () => {
      const how = roll();
      if (how < 0.1) return "__typename";
      const one = fieldOf(pick(fields), depth);
      if (how < 0.2) return `... on ${type.name}${directive()} { ${one} }`;
      if (how > 0.9) {
        names += 1;
        fragments.push(`fragment F${names} on ${type.name} { ${one} }`);
        return `...F${names}${directive()}`;
      }
      return one;
    });
    return `{ ${chosen.join(" ")} }`;
  };

  const kind = roll() < 0.6 ? "query" : "mutation";
  const root = kind === "query" ? schema.getQueryType() : schema.getMutationType();
  const body = selectionOf(root as GraphQLObjectType, 0);
  const head = definitions.length > 0 ? `(${definitions.join(", ")})` : "";
  return { query: `${kind} Any${head} ${body}\n${fragments.join("\n")}`, variables };
}

const VALUES: Record<string, readonly unknown[]> = {
  Int: [0, 1, 20, -3, 2 ** 31 - 1],
  Float: [0.5, 3],
  String: ["", "text", 'täxt \u2028 " \\'],
  Boolean: [true, false],
  ID: ["id", "7", ""],
  UUID: ["123e4567-e89b-42d3-a456-426614174000", "123E4567-E89B-42D3-A456-426614174000", "none"],
  DateTime: ["2026-11-27T09:00:00.000Z", "2026-11-27T09:00:00+01:00", "never"],
};

/** Gives every field of the schema a resolver that makes up its answer from where it stands and its arguments. */
export function answerAnything(schema: GraphQLSchema): GraphQLSchema {
  for (const type of Object.values(schema.getTypeMap())) {
    if (!isObjectType(type) || type.name.startsWith("__")) continue;
    for (const field of Object.values(type.getFields())) {
      field.resolve = (source: unknown, args: Record<string, unknown>) => {
        const key = `${(source as { key?: string } | undefined)?.key ?? ""}/${field.name}${inOrder(args)}`;
        const roll = dice(createHash("sha256").update(key).digest().readUInt32BE(0));
        const late = roll() < 0.4;
        if (!late) return answerOf(field.type, key, args, roll);
        return Promise.resolve().then(() => answerOf(field.type, key, args, roll));
      };
    }
  }
  return schema;
}

/** As text, whatever order the names are in. */
function inOrder(args: unknown): string {
  return JSON.stringify(args, (_name, value: unknown) =>
    typeof value === "object" && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
}

function answerOf(type: GraphQLOutputType, key: string, args: object, roll: () => number): unknown {
  const how = roll();
  if (how < 0.04) throw new SluiceError("CONFLICT", "made up", 500);
  if (how < 0.06) throw new Error("an internal text");
  if (how < (isNonNullType(type) ? 0.08 : 0.2)) return null;
  const nullable = getNullableType(type);
  if (isListType(nullable)) {
    return Array.from({ length: Math.floor(roll() * 3) }, (_, at) =>
      answerOf(nullable.ofType, `${key}[${at}]`, args, roll),
    );
  }
  if (isEnumType(nullable)) return how > 0.97 ? "NO_SUCH" : (nullable as GraphQLEnumType).getValues()[0]?.value;
  switch ((nullable as GraphQLNamedType).name) {
    case "Int":
      return how > 0.97 ? 2 ** 40 : Math.floor(roll() * 1000);
    case "Float":
      return roll();
    case "Boolean":
      return roll() < 0.5;
    case "DateTime":
      return new Date(Math.floor(roll() * 1e12));
    case "String":
    case "ID":
    case "UUID":
      // Shows whether an argument was absent or null.
      return inOrder(args);
    default:
      return { key };
  }
}
