/** Who may ask for what: the one place where roles are enforced. */
import type { GraphQLField, GraphQLFieldResolver, GraphQLSchema } from "graphql";
import { type Principal, type Role, unauthenticated } from "../admission/identity.js";
import { SluiceError } from "../domain/errors.js";
import type { GraphQLContext } from "./context.js";

/** Roles that may select a root field, or everyone, without a token too. */
export type Access = readonly Role[] | "everyone";

/**
 * Each root field, by schema coordinate. Operators may read all that anybody may read; what is by identity
 * (`myReservation`, `myOrders`) answers them for their own, and they can't buy.
 */
export const ACCESS: Readonly<Record<string, Access>> = {
  "Query.serverTime": "everyone",
  "Query.sale": "everyone",
  "Query.sales": "everyone",
  "Query.reservation": ["buyer", "operator"],
  "Query.myReservation": ["buyer", "operator"],
  "Query.order": ["buyer", "operator"],
  "Query.myOrders": ["buyer", "operator"],
  "Query.orders": ["operator"],
  "Query.refundsDue": ["operator"],
  "Query.auditLog": ["operator"],
  "Query.deadLetters": ["operator"],
  "Query.checkSale": ["operator"],
  "Query.requestTrace": ["operator"],
  "Mutation.reserve": ["buyer"],
  "Mutation.cancelOrder": ["buyer"],
  "Mutation.requestPayment": ["buyer"],
  "Mutation.confirmPayment": ["payments"],
  "Mutation.createSale": ["operator"],
  "Mutation.openSale": ["operator"],
  "Mutation.pauseSale": ["operator"],
  "Mutation.resumeSale": ["operator"],
  "Mutation.closeSale": ["operator"],
  "Mutation.adjustStock": ["operator"],
  "Mutation.reloadSale": ["operator"],
  "Mutation.replayDeadLetter": ["operator"],
  "Mutation.compensateDeadLetter": ["operator"],
  "Mutation.discardDeadLetter": ["operator"],
  "Mutation.cancelOrderByOperator": ["operator"],
  "Mutation.refundOrder": ["operator"],
  "Mutation.completeRefund": ["operator"],
  "Mutation.refundPayment": ["operator"],
  "Subscription.reservationUpdates": ["buyer", "operator"],
  "Subscription.saleUpdates": "everyone",
};

/**
 * Puts the table in front of every root field's resolver, before its arguments mean anything.
 * @throws Error where a root field has no row, or a row has no field: a field can't be left open by oversight.
 */
export function enforceAccess(schema: GraphQLSchema, table: Readonly<Record<string, Access>> = ACCESS): GraphQLSchema {
  const unused = new Set(Object.keys(table));
  for (const root of [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()]) {
    for (const field of Object.values(root?.getFields() ?? {})) {
      const coordinate = `${root?.name}.${field.name}`;
      const access = Object.hasOwn(table, coordinate) ? table[coordinate] : undefined;
      if (access === undefined) throw new Error(`${coordinate} has no row in the access table`);
      unused.delete(coordinate);
      guard(field, access);
    }
  }
  if (unused.size > 0) throw new Error(`the access table has rows without a field: ${[...unused].join(", ")}`);
  return schema;
}

/** The caller of a field that the table keeps for some roles. */
export function signedIn(context: GraphQLContext): Principal {
  if (!context.principal) throw unauthenticated("This needs a token.");
  return context.principal;
}

/** Whether drafts and other people's things are shown. */
export function seesAll(context: GraphQLContext): boolean {
  return context.principal?.role === "operator";
}

/** The row if the caller may see it. What is another buyer's looks the same as what isn't there. */
export function ownOrNull<Row extends { readonly buyerId: string }>(
  context: GraphQLContext,
  row: Row | null,
): Row | null {
  return row && (seesAll(context) || row.buyerId === context.principal?.buyerId) ? row : null;
}

type Resolver = GraphQLFieldResolver<unknown, GraphQLContext>;

function guard(field: GraphQLField<unknown, GraphQLContext>, access: Access): void {
  const guarded =
    (resolver: Resolver): Resolver =>
    (source, args, context, info) => {
      check(context.principal, access);
      return resolver(source, args, context, info);
    };
  // Of a subscription, opening is guarded; its values then need no second look.
  if (field.subscribe) field.subscribe = guarded(field.subscribe);
  else if (field.resolve) field.resolve = guarded(field.resolve);
  else throw new Error(`${field.name} has no resolver to guard`);
}

function check(principal: Principal | null, access: Access): void {
  if (access === "everyone") return;
  if (!principal) throw unauthenticated("This needs a token.");
  if (!access.includes(principal.role)) {
    throw new SluiceError("FORBIDDEN", `This is not for the role ${principal.role}.`);
  }
}
