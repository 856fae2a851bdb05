/** Lists of the API that are read a page at a time. */
import { expect } from "vitest";
import type { Api } from "./sluice.js";

interface Page {
  readonly edges: readonly { readonly cursor: string; readonly node: { readonly id: string } }[];
  readonly pageInfo: {
    readonly hasNextPage: boolean;
    readonly hasPreviousPage: boolean;
    readonly startCursor: string | null;
    readonly endCursor: string | null;
  };
}

/** A list: `query` takes $first and $after, and selects LIST. */
export interface List {
  readonly api: Api;
  readonly token: string;
  readonly field: string;
  readonly query: string;
  readonly variables?: Record<string, unknown>;
}

/** The selection of a list whose rows have this as their id. */
export function listOf(id: string): string {
  return `edges { cursor node { id: ${id} } } pageInfo { hasNextPage hasPreviousPage startCursor endCursor }`;
}

/** Reads the list some rows at a time, expects each page to say where it stands, and gives the ids in their order. */
export async function readPages(list: List, first: number): Promise<string[]> {
  const ids: string[] = [];
  let after: string | null = null;
  for (;;) {
    const { edges, pageInfo }: Page = await pageOf(list, { first, after });
    ids.push(...edges.map(({ node }) => node.id));
    expect(edges.length).toBeLessThanOrEqual(first);
    if (pageInfo.hasNextPage) expect(edges).toHaveLength(first);
    expect(pageInfo).toMatchObject({
      hasPreviousPage: after !== null,
      startCursor: edges.at(0)?.cursor ?? null,
      endCursor: edges.at(-1)?.cursor ?? null,
    });
    if (!pageInfo.hasNextPage) return ids;
    after = pageInfo.endCursor;
  }
}

/** One page. Throws where it is refused. */
export async function pageOf(list: List, page: { first: number; after?: string | null }): Promise<Page> {
  const { api, token, query, variables, field } = list;
  const { data, errors } = await api.call<Record<string, Page>>(token, query, { ...variables, ...page });
  const found = data?.[field];
  if (errors || !found) throw new Error(JSON.stringify(errors));
  return found;
}

/** The codes of the errors with which a page is refused. */
export async function refusalOf(list: List, page: { first: number; after?: string | null }): Promise<string[]> {
  const { errors } = await list.api.call(list.token, list.query, { ...list.variables, ...page });
  return (errors ?? []).map(({ extensions }) => extensions.code);
}

/** A cursor as the API makes them, of whatever it wouldn't. */
export function forgeCursor(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}
