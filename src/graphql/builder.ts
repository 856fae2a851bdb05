import SchemaBuilder from "@pothos/core";
import type { GraphQLContext } from "./context.js";

/** The one builder that all modules add their types and fields to. Fields are non-null unless they say otherwise. */
export const builder = new SchemaBuilder<{
  Context: GraphQLContext;
  DefaultFieldNullability: false;
  Scalars: {
    ID: { Input: string; Output: string };
    DateTime: { Input: Date; Output: Date };
    /** lower-case */
    UUID: { Input: string; Output: string };
  };
}>({ defaultFieldNullability: false });

builder.queryType();
builder.mutationType();
builder.subscriptionType();
