import type { Database, Tx } from "../db/client.js";
import {
  countUnfinished,
  findBuyersAboveTheLimit,
  findBuyersWithSeveralOrders,
  findOrdersUnlikeTheirRequests,
  findOverdueRequests,
  type ItemUnits,
  inSnapshot,
  readItemUnits,
  type Unfinished,
} from "../db/invariants.js";
import { OFFENDERS_AT_MOST, type Offenders } from "../db/offenders.js";
import {
  findItemsUnlikeTheirMovements,
  findItemsUnlikeTheirOrders,
  findOrdersUnlikeTheirMovements,
  findOrdersUnlikeTheirPayments,
  findUnbalancedItems,
} from "../db/stock-invariants.js";
import { notFound } from "../domain/errors.js";
import { SECOND } from "../domain/time.js";
import { pause } from "../lifecycle/pause.js";
import type { RedisLink } from "../redis/link.js";
import { readPending, readRequestsInRedis } from "../redis/read-sale.js";
import { readStock, type StockInRedis } from "../redis/read-stock.js";

export interface CheckSaleDeps {
  readonly reads: Database;
  readonly redis: RedisLink;
}

/** The invariants that the two stores alone can tell of: see docs/map.md. */
export const INVARIANTS = ["S", "U", "C", "T"] as const;
export type Invariant = (typeof INVARIANTS)[number];

/** The ways in which they can be broken. */
export type FindingKind =
  | "columns"
  | "orders"
  | "sums"
  | "movements"
  | "payments"
  | "buyers_twice"
  | "buyers_above_limit"
  | "stories"
  | "offers"
  | "undecided"
  | "in_line";

/** One way in which an invariant is broken, and by whom. */
export interface Finding extends Offenders {
  readonly invariant: Invariant;
  /** a name for metrics and code */
  readonly kind: FindingKind;
  /** what is not as it must be, in words */
  readonly what: string;
}

/** What the two stores say of one sale. */
export interface SaleCheck {
  readonly saleId: string;
  /** empty where everything that could be judged holds */
  readonly findings: readonly Finding[];
  /**
   * Why C could not be judged, null where it was: the sale is not in Redis, which then has nothing to agree with; or what
   * Redis has done and the database doesn't know yet, or the other way round, makes the two differ rightly.
   */
  readonly uncompared: "not_loaded" | "moving" | null;
  readonly items: readonly ItemUnits[];
  readonly unfinished: Omit<Unfinished, "epoch"> & { readonly pendingInRedis: number };
}

const NOBODY: Offenders = { count: 0, shown: [] };
const LOOKS = 5;
const BETWEEN_LOOKS_MS = SECOND / 10;

/**
 * Checks the invariants S, U, C and T of one sale. Reads only, and is safe on a sale under way: S, U and T are told from one
 * snapshot of the database; for C the two stores are looked at a few times, since what moves meanwhile is no breach.
 *
 * `boundMs` is how long a request may wait for its end before T counts as broken: 0 for a sale that has come to rest.
 *
 * @throws SluiceError NOT_FOUND, RedisUnavailableError, a database error
 */
export async function checkSale(deps: CheckSaleDeps, saleId: string, boundMs: number): Promise<SaleCheck> {
  let look = await lookOnce(deps, saleId);
  for (let looks = 1; look.uncompared === "moving" && looks < LOOKS; looks += 1) {
    await pause(BETWEEN_LOOKS_MS);
    look = await lookOnce(deps, saleId);
  }
  const { offers, stock, uncompared, items, unfinished } = look;
  const findings = await inSnapshot(deps.reads, (tx) => findInDatabase(tx, saleId, boundMs));
  const { epoch: _, ...counts } = unfinished;
  return {
    saleId,
    findings: [
      ...findings,
      finding("offers", offers),
      finding("in_line", await findPendingTooLong(deps.redis, saleId, boundMs, stock)),
    ].filter(({ count }) => count > 0),
    uncompared,
    items,
    unfinished: { ...counts, pendingInRedis: stock.pending },
  };
}

/** Compares the two stores, with as little as can be between the two readings of Redis: whatever moves there spoils it. */
async function lookOnce(deps: CheckSaleDeps, saleId: string) {
  const before = await readStock(deps.redis, saleId);
  const { unfinished, items } = await inSnapshot(deps.reads, async (tx) => {
    const counted = await countUnfinished(tx, saleId);
    if (!counted) throw notFound("There is no such sale.");
    return { unfinished: counted, items: await readItemUnits(tx, saleId) };
  });
  const stock = await readStock(deps.redis, saleId);
  return { ...compare(before, stock, unfinished, items), stock, unfinished, items };
}

async function findInDatabase(tx: Tx, saleId: string, boundMs: number): Promise<Finding[]> {
  return [
    finding("columns", await findUnbalancedItems(tx, saleId)),
    finding("orders", await findItemsUnlikeTheirOrders(tx, saleId)),
    finding("sums", await findItemsUnlikeTheirMovements(tx, saleId)),
    finding("movements", await findOrdersUnlikeTheirMovements(tx, saleId)),
    finding("payments", await findOrdersUnlikeTheirPayments(tx, saleId)),
    finding("buyers_twice", await findBuyersWithSeveralOrders(tx, saleId)),
    finding("buyers_above_limit", await findBuyersAboveTheLimit(tx, saleId)),
    finding("stories", await findOrdersUnlikeTheirRequests(tx, saleId)),
    finding("undecided", await findOverdueRequests(tx, saleId, boundMs)),
  ];
}

const KINDS: Record<FindingKind, readonly [Invariant, string]> = {
  columns: ["S", "units of an item, over its columns"],
  orders: ["S", "units of an item, by its orders"],
  sums: ["S", "units of an item, by its movements"],
  movements: ["S", "movements of an order's units, by its status"],
  payments: ["S", "money of an order, by its status"],
  buyers_twice: ["U", "valid orders of a buyer"],
  buyers_above_limit: ["U", "units of a buyer"],
  stories: ["U", "orders, by the requests they are of"],
  offers: ["C", "units of an item that Redis offers"],
  undecided: ["T", "requests without an end"],
  in_line: ["T", "requests that still stand in line in Redis"],
};

function finding(kind: FindingKind, offenders: Offenders): Finding {
  const [invariant, what] = KINDS[kind];
  return { invariant, kind, what, ...offenders };
}

/** C, where it can be judged: nothing moved while the database was read, and each store knows all that the other has done. */
function compare(
  before: StockInRedis,
  after: StockInRedis,
  unfinished: Unfinished,
  items: readonly ItemUnits[],
): { uncompared: SaleCheck["uncompared"]; offers: Offenders } {
  if (!after.loaded) return { uncompared: "not_loaded", offers: NOBODY };
  const still = before.loaded && before.seq === after.seq && after.epoch === unfinished.epoch;
  const inLine = unfinished.undecided - unfinished.parked;
  if (!still || after.pending !== inLine) return { uncompared: "moving", offers: NOBODY };

  const wrong = items
    .filter((item) => after.units[item.itemId] !== String(item.offered))
    .map((item) => ({ id: item.itemId, expected: item.offered, actual: after.units[item.itemId] ?? "nothing" }));
  // An event may be applied in Redis, and a moment later be marked so in the database.
  if (wrong.length > 0 && unfinished.eventsNotApplied > 0) return { uncompared: "moving", offers: NOBODY };
  return { uncompared: null, offers: { count: wrong.length, shown: wrong.slice(0, OFFENDERS_AT_MOST) } };
}

/** Requests that stand in Redis's line for too long, whatever the database says of them: of the oldest twenty. */
async function findPendingTooLong(
  redis: RedisLink,
  saleId: string,
  boundMs: number,
  stock: StockInRedis,
): Promise<Offenders> {
  if (!stock.loaded || stock.pending === 0) return NOBODY;
  const oldest = await readPending(redis, saleId, 0, OFFENDERS_AT_MOST);
  const requests = await readRequestsInRedis(
    redis,
    oldest.map(({ requestId }) => ({ saleId, requestId })),
  );
  const shown = oldest.flatMap(({ requestId }, at) => {
    const waitedMs = redis.clock.now() - (requests[at]?.acceptedAt.getTime() ?? 0);
    if (boundMs > 0 && waitedMs < boundMs) return [];
    const actual = requests[at] ? `waiting for ${Math.max(0, Math.round(waitedMs / SECOND))} s` : "not known any more";
    return [{ id: requestId, expected: "decided", actual }];
  });
  return { count: boundMs > 0 ? shown.length : stock.pending, shown };
}
