import { builder } from "../builder.js";
import type { PageInfo as PageInfoShape } from "../pagination.js";

/** Where a page of a list stands in it. */
export const PageInfo = builder.objectRef<PageInfoShape>("PageInfo").implement({
  fields: (t) => ({
    hasNextPage: t.exposeBoolean("hasNextPage"),
    hasPreviousPage: t.exposeBoolean("hasPreviousPage"),
    startCursor: t.exposeString("startCursor", { nullable: true }),
    endCursor: t.exposeString("endCursor", { nullable: true }),
  }),
});
