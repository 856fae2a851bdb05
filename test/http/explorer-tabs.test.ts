import { readFileSync } from "node:fs";
import { buildSchema, getVariableValues, Kind, type OperationDefinitionNode, parse, validate } from "graphql";
import { describe, expect, it } from "vitest";
import { type ExplorerTab, PLAIN_TABS, tourTabs } from "../../src/http/explorer-tabs.js";

const schema = buildSchema(readFileSync(new URL("../../src/graphql/schema.graphql", import.meta.url), "utf8"));

const sale = { saleId: "a-sale", itemId: "an-item" };
const requestId = "5f0c3e1a-8a52-4c1e-9d37-2f6b0c9e7a11";
const tour = { requestId, buyerToken: "a-buyer", operatorToken: "an-operator" };

const VARIANTS: Record<string, readonly ExplorerTab[]> = {
  "the tour": tourTabs({ ...tour, sale }),
  "the tour without an operator's token": tourTabs({ ...tour, sale, operatorToken: null }),
  "the tour without a sale": tourTabs({ ...tour, sale: null }),
  "the tour without either": tourTabs({ ...tour, sale: null, operatorToken: null }),
  "outside of the demo": PLAIN_TABS,
};

describe("the explorer's tabs", () => {
  for (const [variant, tabs] of Object.entries(VARIANTS)) {
    it(`${variant}: every document is valid, and runs with the variables beside it`, () => {
      for (const { query, variables } of tabs) {
        const document = parse(query);
        expect(validate(schema, document), query).toEqual([]);
        for (const operation of document.definitions) {
          expect(operation.kind).toBe(Kind.OPERATION_DEFINITION);
          const { name, variableDefinitions } = operation as OperationDefinitionNode;
          const { errors } = getVariableValues(schema, variableDefinitions ?? [], JSON.parse(variables ?? "{}"));
          expect(errors, `variables of ${name?.value}`).toBeUndefined();
        }
      }
    });

    it(`${variant}: every tab begins with a comment, and no line is longer than GraphiQL shows`, () => {
      for (const { query } of tabs) {
        expect(query).toMatch(/^# /);
        for (const line of query.split("\n")) expect(line.length, line).toBeLessThanOrEqual(50);
      }
    });
  }

  it("carry the token of whoever does that, in the order of the tour", () => {
    const who = (tabs: readonly ExplorerTab[]) =>
      tabs.map(({ query, headers }) => [
        /^(?:query|mutation|subscription) (\w+)/m.exec(query)?.[1],
        headers && (JSON.parse(headers) as { authorization: string }).authorization,
      ]);
    expect(who(tourTabs({ ...tour, sale }))).toEqual([
      ["Reserve", "Bearer a-buyer"],
      ["SameAgain", "Bearer a-buyer"],
      ["Watch", "Bearer a-buyer"],
      ["Pay", "Bearer a-buyer"],
      ["Operate", "Bearer an-operator"],
      ["SaleLive", null],
    ]);
    expect(who(tourTabs({ ...tour, sale: null }))).toEqual([
      ["NewSale", "Bearer an-operator"],
      ["OpenSales", null],
    ]);
    expect(who(PLAIN_TABS)).toEqual([
      ["OpenSales", null],
      ["WithToken", null],
    ]);
  });

  it("that need an operator's token and have none say how to make one", () => {
    for (const variant of [tourTabs({ ...tour, sale, operatorToken: null }), VARIANTS["the tour without either"]]) {
      const operators = variant?.find(({ query }) => query.includes("mutation Pause") || query.includes("createSale"));
      expect(operators?.query).toContain("npm run --silent token -- operator me");
    }
    const operate = tourTabs({ ...tour, sale }).find(({ query }) => query.includes("mutation Pause"));
    expect(operate?.query).not.toContain("npm run");
  });
});
