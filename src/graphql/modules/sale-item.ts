import type { Item, LiveSale, Sale } from "../../domain/model.js";
import { builder } from "../builder.js";
import type { GraphQLContext } from "../context.js";

/** An item wherever it is reached from: what it was created as and what is left of it, each read only when a field asks. */
export interface ItemNode {
  readonly id: string;
  /** at hand, or read along with the live sale */
  readonly row: () => Item | Promise<Item>;
  readonly remaining: () => Promise<number>;
}

/** An item of a sale at hand. */
export function itemOfSale(item: Item, live: () => Promise<LiveSale>): ItemNode {
  return { id: item.id, row: () => item, remaining: async () => remainingOf(await live(), item.id) };
}

/** The item that a reservation or an order names, with one read of its sale however many of its fields are selected. */
export function itemNamed(ref: { saleId: string; itemId: string }, { loaders }: GraphQLContext): ItemNode {
  const live = lazyLiveSale(ref.saleId, loaders);
  return {
    id: ref.itemId,
    row: async () => itemIn(await live(), ref.itemId),
    remaining: async () => remainingOf(await live(), ref.itemId),
  };
}

/** The live sale of an id that a row of ours names, read at most once, when first called. */
export function lazyLiveSale(saleId: string, loaders: GraphQLContext["loaders"]): () => Promise<LiveSale> {
  let reading: Promise<LiveSale> | undefined;
  const read = async () => {
    const sale = await loaders.sale.load(saleId);
    if (!sale) throw new Error(`sale ${saleId} is named by a row, and isn't there`);
    return sale;
  };
  return () => {
    reading ??= read();
    return reading;
  };
}

/** A unit's worth of what a sale sells. */
export const SaleItem = builder.objectRef<ItemNode>("SaleItem").implement({
  fields: (t) => ({
    id: t.exposeID("id"),
    sku: t.string({ resolve: async (item) => (await item.row()).sku }),
    title: t.string({ resolve: async (item) => (await item.row()).title }),
    priceMinor: t.int({
      description: "price of a unit in the currency's minor unit",
      resolve: async (item) => (await item.row()).priceMinor,
    }),
    currency: t.string({ description: "ISO 4217", resolve: async (item) => (await item.row()).currency }),
    initial: t.int({ description: "units put on sale", resolve: async (item) => (await item.row()).initial }),
    remaining: t.int({ description: "units that can be reserved now", resolve: (item) => item.remaining() }),
    soldOut: t.boolean({ resolve: async (item) => (await item.remaining()) === 0 }),
  }),
});

function itemIn(sale: Sale, itemId: string): Item {
  const item = sale.items.find(({ id }) => id === itemId);
  if (!item) throw new Error(`item ${itemId} is named by a row, and isn't in sale ${sale.id}`);
  return item;
}

function remainingOf(sale: LiveSale, itemId: string): number {
  const remaining = sale.remaining.get(itemId);
  if (remaining === undefined) throw new Error(`sale ${sale.id} doesn't tell what remains of item ${itemId}`);
  return remaining;
}
