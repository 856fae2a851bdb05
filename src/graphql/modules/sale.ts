import { notFound } from "../../domain/errors.js";
import { isId } from "../../domain/ids.js";
import type { LiveSale, Sale } from "../../domain/model.js";
import { SALE_STATES } from "../../domain/sale-state.js";
import { listSales } from "../../operations/read-sales.js";
import { watchSale } from "../../operations/watch.js";
import { seesAll } from "../access.js";
import { builder } from "../builder.js";
import type { GraphQLContext } from "../context.js";
import { connectionOf, decodeCursor, pageSize } from "../pagination.js";
import { fitInt } from "../scalars.js";
import { connectionType } from "./page.js";
import { itemOfSale, lazyLiveSale, SaleItem } from "./sale-item.js";

/** A sale's row, and what moves in it: read only when a field asks, and never where it is at hand. */
export interface SaleNode {
  readonly row: Sale;
  readonly live: () => Promise<LiveSale>;
}

/** The node of a row that was read without its live part. */
export function nodeOfRow(row: Sale, { loaders }: GraphQLContext): SaleNode {
  return { row, live: lazyLiveSale(row.id, loaders) };
}

const nodeOfLive = (sale: LiveSale): SaleNode => ({ row: sale, live: () => Promise.resolve(sale) });

/** The sale if the caller may know of it: drafts are the operators'. */
async function visibleSale(id: string, context: GraphQLContext): Promise<LiveSale | null> {
  if (!isId(id)) return null;
  const sale = await context.loaders.sale.load(id);
  return sale && (sale.state !== "DRAFT" || seesAll(context)) ? sale : null;
}

const SaleStateEnum = builder.enumType("SaleState", {
  description:
    "DRAFT → OPEN ⇄ PAUSED → CLOSED. Past closesAt nothing can be reserved, and the sale becomes CLOSED by itself within a minute.",
  values: SALE_STATES,
});

/** A campaign. */
export const SaleType = builder.objectRef<SaleNode>("Sale").implement({
  fields: (t) => ({
    id: t.id({ resolve: ({ row }) => row.id }),
    title: t.string({ resolve: ({ row }) => row.title }),
    state: t.field({ type: SaleStateEnum, resolve: ({ row }) => row.state }),
    pauseReason: t.string({ nullable: true, resolve: ({ row }) => row.pauseReason }),
    opensAt: t.field({ type: "DateTime", resolve: ({ row }) => row.opensAt }),
    closesAt: t.field({ type: "DateTime", resolve: ({ row }) => row.closesAt }),
    maxPerBuyer: t.int({
      description: "units in the one live reservation or order that a buyer may have in this sale",
      resolve: ({ row }) => row.maxPerBuyer,
    }),
    paymentWindowSeconds: t.int({
      description: "how long an unpaid order keeps its stock",
      resolve: ({ row }) => row.paymentWindowSeconds,
    }),
    items: t.field({
      type: [SaleItem],
      resolve: ({ row, live }) => row.items.map((item) => itemOfSale(item, live)),
    }),
    version: t.int({
      description: "grows with every change of state or stock that is published: drop what is older than what you have",
      resolve: async ({ live }) => fitInt((await live()).version),
    }),
  }),
});

const SaleConnection = connectionType("Sale", SaleType);

builder.queryFields((t) => ({
  sale: t.field({
    type: SaleType,
    nullable: true,
    args: { id: t.arg.id({ required: true }) },
    resolve: async (_root, { id }, context) => {
      const sale = await visibleSale(id, context);
      return sale && nodeOfLive(sale);
    },
  }),
  sales: t.field({
    type: SaleConnection,
    description: "newest first, 100 at most a page; drafts are for operators only",
    args: {
      first: t.arg.int({ required: true, defaultValue: 20 }),
      after: t.arg.string(),
      state: t.arg({ type: SaleStateEnum }),
    },
    resolve: async (_root, { first, after, state }, context) => {
      const position = decodeCursor(after, [isId]);
      const page = await listSales(context.deps, {
        first: pageSize(first),
        after: position && { createdAt: position.createdAt, id: position.key[0] ?? "" },
        state: state ?? null,
        includeDrafts: seesAll(context),
      });
      const nodes = { ...page, rows: page.rows.map((row) => nodeOfRow(row, context)) };
      return connectionOf(nodes, after, ({ row }) => ({ createdAt: row.createdAt, key: [row.id] }));
    },
  }),
}));

builder.subscriptionField("saleUpdates", (t) =>
  t.field({
    type: SaleType,
    description: "First the present state, then changes, four a second at most. Completes when the sale is CLOSED.",
    args: { saleId: t.arg.id({ required: true }) },
    subscribe: async (_root, { saleId }, context) => {
      if (!(await visibleSale(saleId, context))) throw notFound("There is no such sale.");
      return watchSale(context.deps, saleId);
    },
    resolve: (sale: LiveSale) => nodeOfLive(sale),
  }),
);
