import type { SaleAction } from "../../domain/sale-state.js";
import { adjustStock } from "../../operations/adjust-stock.js";
import { changeSaleState } from "../../operations/change-sale-state.js";
import { createSale } from "../../operations/create-sale.js";
import { reloadSale } from "../../operations/reload.js";
import { signedIn } from "../access.js";
import { builder } from "../builder.js";
import type { GraphQLContext } from "../context.js";
import { nodeOfRow, type SaleNode, SaleType } from "./sale.js";

const SaleItemInput = builder.inputType("SaleItemInput", {
  fields: (t) => ({
    sku: t.string({ required: true }),
    title: t.string({ required: true }),
    priceMinor: t.int({ required: true }),
    currency: t.string({ required: true }),
    initial: t.int({ required: true }),
  }),
});

const CreateSaleInput = builder.inputType("CreateSaleInput", {
  fields: (t) => ({
    title: t.string({ required: true }),
    opensAt: t.field({ type: "DateTime", required: true }),
    closesAt: t.field({ type: "DateTime", required: true }),
    maxPerBuyer: t.int({ required: true, defaultValue: 1 }),
    paymentWindowSeconds: t.int({ required: true, defaultValue: 900 }),
    items: t.field({ type: [SaleItemInput], required: true }),
  }),
});

async function change(
  action: SaleAction,
  args: { saleId: string; reason?: string },
  context: GraphQLContext,
): Promise<SaleNode> {
  const row = await changeSaleState(context.deps, { ...args, action, actor: signedIn(context).buyerId });
  return nodeOfRow(row, context);
}

builder.mutationFields((t) => ({
  createSale: t.field({
    type: SaleType,
    description: "operator",
    args: { input: t.arg({ type: CreateSaleInput, required: true }) },
    resolve: async (_root, { input }, context) =>
      nodeOfRow(await createSale(context.deps, input, signedIn(context).buyerId), context),
  }),
  openSale: t.field({
    type: SaleType,
    description: "operator. Loads the stock into Redis; reservations are let in from opensAt on",
    args: { saleId: t.arg.id({ required: true }) },
    resolve: (_root, args, context) => change("open", args, context),
  }),
  pauseSale: t.field({
    type: SaleType,
    description: "operator. In force on every instance when it returns",
    args: { saleId: t.arg.id({ required: true }), reason: t.arg.string({ required: true }) },
    resolve: (_root, args, context) => change("pause", args, context),
  }),
  resumeSale: t.field({
    type: SaleType,
    description: "operator",
    args: { saleId: t.arg.id({ required: true }) },
    resolve: (_root, args, context) => change("resume", args, context),
  }),
  closeSale: t.field({
    type: SaleType,
    description: "operator",
    args: { saleId: t.arg.id({ required: true }) },
    resolve: (_root, args, context) => change("close", args, context),
  }),
  reloadSale: t.field({
    type: SaleType,
    description:
      "operator. Loads the sale into Redis again from the database's truth: what repairs two stores that disagree. A repeat loads once more",
    args: { saleId: t.arg.id({ required: true }), reason: t.arg.string({ required: true }) },
    resolve: async (_root, args, context) =>
      nodeOfRow(await reloadSale(context.deps, { ...args, actor: signedIn(context).buyerId }), context),
  }),
  adjustStock: t.field({
    type: SaleType,
    description: [
      "operator. Puts units of an item on sale, or takes some off it: never those that somebody was promised or has ordered,",
      "which is the error CONFLICT. A repeat adjusts again",
    ].join("\n"),
    args: {
      saleId: t.arg.id({ required: true }),
      itemId: t.arg.id({ required: true }),
      delta: t.arg.int({ required: true }),
      reason: t.arg.string({ required: true }),
    },
    resolve: async (_root, args, context) =>
      nodeOfRow(await adjustStock(context.deps, { ...args, actor: signedIn(context).buyerId }), context),
  }),
}));
