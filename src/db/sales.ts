import type { Item, Page, Sale } from "../domain/model.js";
import type { SaleState } from "../domain/sale-state.js";
import type { Database, Tx } from "./client.js";
import type { Prisma } from "./generated/client.js";

export interface NewSale {
  readonly id: string;
  readonly title: string;
  readonly opensAt: Date;
  readonly closesAt: Date;
  readonly maxPerBuyer: number;
  readonly paymentWindowSeconds: number;
  readonly items: readonly Omit<Item, "saleId">[];
}

/** Writes a draft with its items, all of whose units are available: each came by a movement, as every later one does. */
export async function insertSale(tx: Tx, sale: NewSale): Promise<void> {
  const { items, ...columns } = sale;
  await tx.sale.create({ data: columns });
  await tx.saleItem.createMany({
    data: items.map((item, position) => ({ ...item, saleId: sale.id, position, available: item.initial })),
  });
  await tx.stockMovement.createMany({
    data: items.map(({ id, initial }) => ({ saleId: sale.id, itemId: id, kind: "ADJUST", quantity: initial })),
  });
}

/** Sales with their items, in the order of the ids; null for what isn't there. */
export async function findSales(db: Database | Tx, ids: readonly string[]): Promise<(Sale | null)[]> {
  const rows = await db.sale.findMany({ where: { id: { in: [...ids] } } });
  const sales = new Map((await withItems(db, rows)).map((sale) => [sale.id, sale]));
  return ids.map((id) => sales.get(id) ?? null);
}

export interface SaleListQuery {
  readonly first: number;
  /** the last sale of the page before */
  readonly after: { readonly createdAt: Date; readonly id: string } | null;
  readonly state: SaleState | null;
  readonly includeDrafts: boolean;
}

/** A page of sales, the newest first. */
export async function findSalePage(db: Database, query: SaleListQuery): Promise<Page<Sale>> {
  const where: Prisma.SaleWhereInput[] = [];
  if (query.state) where.push({ state: query.state });
  if (!query.includeDrafts) where.push({ state: { not: "DRAFT" } });
  if (query.after) {
    const { createdAt, id } = query.after;
    where.push({ OR: [{ createdAt: { lt: createdAt } }, { createdAt, id: { lt: id } }] });
  }
  const rows = await db.sale.findMany({
    where: { AND: where },
    orderBy: [{ createdAt: "desc" }, { id: "desc" }],
    take: query.first + 1,
  });
  return { rows: await withItems(db, rows.slice(0, query.first)), hasNextPage: rows.length > query.first };
}

/**
 * Moves a sale from one of the states to another, and answers with how many rows that was: none where it is in another
 * state by now.
 */
export async function updateSaleState(
  tx: Tx,
  saleId: string,
  from: readonly SaleState[],
  to: SaleState,
  pauseReason: string | null,
): Promise<number> {
  const { count } = await tx.sale.updateMany({
    where: { id: saleId, state: { in: [...from] } },
    data: { state: to, stateVersion: { increment: 1 }, pauseReason },
  });
  return count;
}

/** Closes the sales whose window has passed by the database's clock, and answers with their ids. */
export async function closeEndedSales(db: Database): Promise<string[]> {
  const rows = await db.$queryRaw<{ id: string }[]>`
    UPDATE sales SET state = 'CLOSED', "stateVersion" = "stateVersion" + 1, "pauseReason" = NULL, "updatedAt" = now()
    WHERE state IN ('OPEN', 'PAUSED') AND "closesAt" <= now()
    RETURNING id`;
  return rows.map((row) => row.id);
}

/** What the loops of a worker have to know of a sale that Redis may hold. */
export interface WatchedSale {
  readonly id: string;
  readonly state: SaleState;
  readonly stateVersion: number;
  readonly closesAt: Date;
  readonly epoch: number;
  readonly seqSeen: number;
  /** open, paused, or with undecided requests: its queue has to be served */
  readonly served: boolean;
}

/**
 * Sales that Redis may hold: opened once, and remembered there still. A closed one has no queue to be served, but Redis
 * may have to be told that it is closed, or what its last requests came to.
 */
export async function findWatchedSales(db: Database, rememberedMs: number): Promise<WatchedSale[]> {
  return db.$queryRaw<WatchedSale[]>`
    SELECT * FROM (
      SELECT s.id, s.state::text AS state, s."stateVersion", s."closesAt", s.epoch, s."seqSeen"::float8 AS "seqSeen",
             s.state IN ('OPEN', 'PAUSED')
               OR EXISTS (SELECT 1 FROM requests r WHERE r."saleId" = s.id AND r.outcome IS NULL) AS served
      FROM sales s
      WHERE s.state <> 'DRAFT'
    ) w
    WHERE w.served OR w."closesAt" > now() - ${rememberedMs} * interval '1 millisecond'
    ORDER BY w.id`;
}

/** Remembers how far a sale's change numbers have got in Redis, for the epoch after. */
export async function noteSeqSeen(db: Database, saleId: string, seq: number): Promise<void> {
  await db.$executeRaw`
    UPDATE sales SET "seqSeen" = greatest("seqSeen", ${BigInt(Math.floor(seq))}::bigint) WHERE id = ${saleId}`;
}

/** Units of each item that were promised to nobody, for a sale that Redis can't be asked about: never below 0. */
export async function findUnpromisedUnits(
  db: Database,
  saleIds: readonly string[],
): Promise<Map<string, Map<string, number>>> {
  const rows = await db.$queryRaw<{ saleId: string; id: string; units: number }[]>`
    SELECT i."saleId", i.id, greatest(0, i.available - coalesce(sum(r.quantity), 0))::int AS units
    FROM sale_items i
    LEFT JOIN requests r ON r."saleId" = i."saleId" AND r."itemId" = i.id AND r.outcome IS NULL
    WHERE i."saleId" = ANY(${[...saleIds]}::text[])
    GROUP BY i."saleId", i.id, i.available`;
  const bySale = new Map<string, Map<string, number>>();
  for (const { saleId, id, units } of rows) {
    const items = bySale.get(saleId) ?? new Map<string, number>();
    bySale.set(saleId, items.set(id, units));
  }
  return bySale;
}

async function withItems(db: Database | Tx, rows: readonly Prisma.SaleGetPayload<object>[]): Promise<Sale[]> {
  const items = await db.saleItem.findMany({
    where: { saleId: { in: rows.map((row) => row.id) } },
    orderBy: [{ saleId: "asc" }, { position: "asc" }],
  });
  return rows.map((row) => ({
    id: row.id,
    title: row.title,
    state: row.state,
    stateVersion: row.stateVersion,
    pauseReason: row.pauseReason,
    opensAt: row.opensAt,
    closesAt: row.closesAt,
    maxPerBuyer: row.maxPerBuyer,
    paymentWindowSeconds: row.paymentWindowSeconds,
    epoch: row.epoch,
    createdAt: row.createdAt,
    items: items
      .filter((item) => item.saleId === row.id)
      .map(({ saleId, id, sku, title, priceMinor, currency, initial }) => ({
        saleId,
        id,
        sku,
        title,
        priceMinor,
        currency,
        initial,
      })),
  }));
}
