import { readFileSync } from "node:fs";
import { buildSchema, parse, validate } from "graphql";
import { describe, expect, it } from "vitest";
import * as documents from "../../web/documents.js";

const schema = buildSchema(readFileSync(new URL("../../src/graphql/schema.graphql", import.meta.url), "utf8"));

describe("what the page asks", () => {
  it.each(Object.entries(documents))("%s is what the schema can answer", (_name, document) => {
    expect(validate(schema, parse(document)).map(({ message }) => message)).toEqual([]);
  });
});
