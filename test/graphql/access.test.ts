import { GraphQLObjectType, type GraphQLResolveInfo, GraphQLSchema, GraphQLString } from "graphql";
import { describe, expect, it } from "vitest";
import { ROLES, type Role } from "../../src/admission/identity.js";
import { SluiceError } from "../../src/domain/errors.js";
import { ACCESS, enforceAccess, ownOrNull } from "../../src/graphql/access.js";
import type { GraphQLContext } from "../../src/graphql/context.js";
import { schema } from "../../src/graphql/schema.js";

/** Who may, in the words of the design, apart from the table that is under test. */
const EVERYONE = ["Query.serverTime", "Query.sale", "Query.sales", "Subscription.saleUpdates"];
const BUYERS = [
  ...EVERYONE,
  "Query.reservation",
  "Query.myReservation",
  "Query.order",
  "Query.myOrders",
  "Mutation.reserve",
  "Mutation.cancelOrder",
  "Mutation.requestPayment",
  "Subscription.reservationUpdates",
];
const BUYERS_ALONE = ["Mutation.reserve", "Mutation.cancelOrder", "Mutation.requestPayment"];
const OPERATORS = [
  ...BUYERS.filter((coordinate) => !BUYERS_ALONE.includes(coordinate)),
  "Query.orders",
  "Query.refundsDue",
  "Query.auditLog",
  "Query.deadLetters",
  "Query.checkSale",
  "Query.requestTrace",
  "Mutation.createSale",
  "Mutation.openSale",
  "Mutation.pauseSale",
  "Mutation.resumeSale",
  "Mutation.closeSale",
  "Mutation.adjustStock",
  "Mutation.reloadSale",
  "Mutation.replayDeadLetter",
  "Mutation.compensateDeadLetter",
  "Mutation.discardDeadLetter",
  "Mutation.cancelOrderByOperator",
  "Mutation.refundOrder",
  "Mutation.completeRefund",
  "Mutation.refundPayment",
];
const MAY: Record<Role | "nobody", readonly string[]> = {
  nobody: EVERYONE,
  buyer: BUYERS,
  operator: OPERATORS,
  payments: [...EVERYONE, "Mutation.confirmPayment"],
};

const roots = [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()];
const rootFields = roots.flatMap((root) =>
  Object.values(root?.getFields() ?? {}).map((field) => ({ coordinate: `${root?.name}.${field.name}`, field })),
);

describe("access", () => {
  it("has a row for every root field, and no other", () => {
    expect(Object.keys(ACCESS).sort()).toEqual(rootFields.map(({ coordinate }) => coordinate).sort());
  });

  it.each(["nobody", ...ROLES] as const)("lets %s reach what the design says, and nothing else", async (role) => {
    const reached = [];
    for (const { coordinate, field } of rootFields) {
      const outcome = await refusalOf(() => (field.subscribe ?? field.resolve)?.(undefined, {}, contextOf(role), info));
      if (outcome === "reached") reached.push(coordinate);
      else
        expect({ coordinate, outcome }).toEqual({
          coordinate,
          outcome: role === "nobody" ? "UNAUTHENTICATED" : "FORBIDDEN",
        });
    }
    expect(reached.sort()).toEqual([...MAY[role]].sort());
  });

  it("doesn't build a schema with a root field that has no row", () => {
    expect(() => enforceAccess(tiny(), {})).toThrow("Query.thing has no row in the access table");
  });

  it("doesn't build a schema where a row has no field", () => {
    const table = { "Query.thing": "everyone", "Query.gone": "everyone" } as const;
    expect(() => enforceAccess(tiny(), table)).toThrow("rows without a field: Query.gone");
  });

  it("shows a buyer his own rows only, and an operator anybody's", () => {
    const row = { buyerId: "ann" };
    expect(ownOrNull(contextOf("buyer", "ann"), row)).toBe(row);
    expect(ownOrNull(contextOf("buyer", "bob"), row)).toBeNull();
    expect(ownOrNull(contextOf("operator", "bob"), row)).toBe(row);
    expect(ownOrNull(contextOf("nobody"), row)).toBeNull();
  });
});

const info = {} as GraphQLResolveInfo;

/** A context whose operations can't be reached: whoever gets past the guard fails otherwise than by being refused. */
function contextOf(role: Role | "nobody", buyerId = "ann"): GraphQLContext {
  const principal = role === "nobody" ? null : { role, buyerId, expiresAt: Number.POSITIVE_INFINITY };
  return { requestId: "test", principal } as GraphQLContext;
}

async function refusalOf(call: () => unknown): Promise<string> {
  try {
    await call();
  } catch (error) {
    if (error instanceof SluiceError && ["UNAUTHENTICATED", "FORBIDDEN"].includes(error.code)) return error.code;
  }
  return "reached";
}

function tiny(): GraphQLSchema {
  const fields = { thing: { type: GraphQLString, resolve: () => "here" } };
  return new GraphQLSchema({ query: new GraphQLObjectType({ name: "Query", fields }) });
}
