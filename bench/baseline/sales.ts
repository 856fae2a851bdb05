import { GraphQLError } from "graphql";
import type { Database } from "./database.js";
import type { Claim, Refusal } from "./reservations.js";

/** What has to be known of a sale to sell in it. */
export interface Sale {
  readonly id: string;
  readonly state: "DRAFT" | "OPEN" | "PAUSED" | "CLOSED";
  readonly opensAt: Date;
  readonly closesAt: Date;
  readonly maxPerBuyer: number;
  readonly paymentWindowSeconds: number;
  readonly items: ReadonlyMap<string, Item>;
}

export interface Item {
  readonly priceMinor: number;
  readonly currency: string;
  /** units when the sale was read */
  readonly available: number;
}

/** Sales by their ids, from memory for a second: nothing in them but the stock changes more often than people press buttons. */
export type FindSale = (saleId: string) => Promise<Sale | null>;

const KEEP_MS = 1_000;

/** @param onRead is told of each sale that was read, before anybody gets it */
export function rememberSales(db: Database, onRead: (sale: Sale) => Promise<void> = async () => {}): FindSale {
  const known = new Map<string, { readonly sale: Promise<Sale | null>; readonly until: number }>();
  return (saleId) => {
    const found = known.get(saleId);
    if (found && found.until > Date.now()) return found.sale;
    const sale = readSale(db, saleId).then(async (read) => {
      if (read) await onRead(read);
      // Made up ids must not fill the memory.
      else known.delete(saleId);
      return read;
    });
    known.set(saleId, { sale, until: Date.now() + KEEP_MS });
    sale.catch(() => known.delete(saleId));
    return sale;
  };
}

async function readSale(db: Database, saleId: string): Promise<Sale | null> {
  const [sale, items] = await Promise.all([
    db.sale.findUnique({ where: { id: saleId } }),
    db.saleItem.findMany({ where: { saleId } }),
  ]);
  return sale && { ...sale, items: new Map(items.map((item) => [item.id, item])) };
}

/** Why a sale does not take this request, whatever its stock; null where it does. */
export function refusalOf(sale: Sale, claim: Claim): Refusal | null {
  const now = Date.now();
  if (sale.state === "CLOSED" || now >= sale.closesAt.getTime()) return "ENDED";
  if (sale.state === "DRAFT" || now < sale.opensAt.getTime()) return "NOT_STARTED";
  if (sale.state === "PAUSED") return "PAUSED";
  return claim.quantity > sale.maxPerBuyer ? "LIMIT_EXCEEDED" : null;
}

/** The sale that a request is for. @throws GraphQLError NOT_FOUND */
export async function saleOf(findSale: FindSale, { saleId }: Claim): Promise<Sale> {
  return (await findSale(saleId)) ?? notFound("There is no such sale.");
}

/** The item that a request is for. @throws GraphQLError NOT_FOUND */
export function itemOf(sale: Sale, { itemId }: Claim): Item {
  return sale.items.get(itemId) ?? notFound("There is no such item in this sale.");
}

function notFound(message: string): never {
  throw new GraphQLError(message, { extensions: { code: "NOT_FOUND" } });
}
