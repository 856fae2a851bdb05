import { builder } from "../builder.js";
import type { Connection, Edge, PageInfo as PageInfoShape } from "../pagination.js";

/** Where a page of a list stands in it. */
const PageInfo = builder.objectRef<PageInfoShape>("PageInfo").implement({
  fields: (t) => ({
    hasNextPage: t.exposeBoolean("hasNextPage"),
    hasPreviousPage: t.exposeBoolean("hasPreviousPage"),
    startCursor: t.exposeString("startCursor", { nullable: true }),
    endCursor: t.exposeString("endCursor", { nullable: true }),
  }),
});

type TypeOf<Node> = ReturnType<ReturnType<typeof builder.objectRef<Node>>["implement"]>;

/** The type of a list's pages, `<name>Connection` with its `<name>Edge`, after the Relay specification. */
export function connectionType<Node>(name: string, node: TypeOf<Node>) {
  const edge = builder.objectRef<Edge<Node>>(`${name}Edge`).implement({
    fields: (t) => ({
      cursor: t.exposeString("cursor"),
      node: t.expose("node", { type: node }),
    }),
  });
  return builder.objectRef<Connection<Node>>(`${name}Connection`).implement({
    fields: (t) => ({
      edges: t.field({ type: [edge], resolve: ({ edges }) => [...edges] }),
      pageInfo: t.field({ type: PageInfo, resolve: ({ pageInfo }) => pageInfo }),
    }),
  });
}
