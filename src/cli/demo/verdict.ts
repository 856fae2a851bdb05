/** The verdict: what the databases say of a sale when the storm is over. Nothing that the crowd has counted goes into it. */
import { findRequests } from "../../db/reservations.js";
import { countOrders, type OrderCounts } from "../../db/sale-results.js";
import { SECOND } from "../../domain/time.js";
import { pause } from "../../lifecycle/pause.js";
import { type CheckSaleDeps, checkSale, type SaleCheck } from "../../operations/check-sale.js";
import type { Heard } from "./heard.js";
import { type Money, type ProveMoneyDeps, proveMoney } from "./money.js";
import { type Breach, type ProveRepeatsDeps, proveRepeats } from "./repeats.js";

export type InvariantName = "S" | "U" | "C" | "T" | "R";

export interface Judgement {
  readonly name: InvariantName;
  readonly means: string;
  /** empty where it holds */
  readonly breaches: readonly Breach[];
}

export interface Verdict {
  readonly units: number;
  /** units of valid orders */
  readonly sold: number;
  readonly orders: OrderCounts;
  /** units that were ordered once more after they had come back */
  readonly soldAgain: number;
  /** orders of the second wave that are paid */
  readonly paidBySecondWave: number;
  readonly money: Money;
  readonly oversold: number;
  readonly buyersTwice: number;
  readonly withoutEnd: number;
  readonly invariants: readonly Judgement[];
}

const MEANINGS: Record<InvariantName, string> = {
  S: "every unit is in one place: available, locked, sold, to be refunded",
  U: "nobody has two: one valid order a buyer, within the limit",
  C: "Redis offers exactly what the database has promised to nobody",
  T: "every accepted request and every unpaid order has come to its end",
  R: "what was acknowledged is stored, and says the same when sent again",
};

const LOOK_AGAIN_MS = SECOND / 4;
/** The sale was at rest a moment ago; where it was not, it has had its time. */
const LAST_LOOK_MS = 3 * SECOND;
/** Who is due expires within two seconds; on a machine that is busy a bit later. */
const OVERDUE_MS = 10 * SECOND;

/**
 * Waits until everything accepted is decided and carried to Redis, and answers with the last look at the sale: also where
 * that took longer than `boundMs`, which the verdict then tells of.
 *
 * @throws RedisUnavailableError or a database error, where it never got a look
 */
export async function waitForRest(deps: CheckSaleDeps, saleId: string, boundMs: number): Promise<SaleCheck> {
  const giveUpAt = performance.now() + boundMs;
  let latest: SaleCheck | null = null;
  for (;;) {
    try {
      latest = await checkSale(deps, saleId, 0);
      if (isAtRest(latest)) return latest;
    } catch (error) {
      if (performance.now() > giveUpAt && !latest) throw error;
    }
    if (performance.now() > giveUpAt && latest) return latest;
    await pause(LOOK_AGAIN_MS);
  }
}

/** Sends what was acknowledged again, orders and money, looks at the sale once more, and judges it by both. */
export async function prove(
  deps: CheckSaleDeps & ProveRepeatsDeps & ProveMoneyDeps,
  target: { readonly saleId: string; readonly itemId: string },
  heard: Pick<Heard, "acknowledged" | "payments" | "secondWave">,
): Promise<Verdict> {
  const { saleId } = target;
  const ofRepeats = await proveRepeats(deps, target, heard.acknowledged);
  const money = await proveMoney(deps, saleId, heard.payments);
  // Only now, since the repeats must not have taken anything either.
  const check = await waitForRest(deps, saleId, LAST_LOOK_MS);
  const second = heard.secondWave.requestIds.map((requestId) => ({ saleId, requestId }));
  const bought = (await findRequests(deps.reads, second)).filter((row) => row?.order?.status === "PAID");
  const orders = await countOrders(deps.reads, saleId, OVERDUE_MS);
  return judge({ check, orders, money, itemId: target.itemId, ofRepeats, paidBySecondWave: bought.length });
}

interface Evidence {
  readonly check: SaleCheck;
  readonly orders: OrderCounts;
  readonly money: Money;
  readonly itemId: string;
  readonly ofRepeats: readonly Breach[];
  readonly paidBySecondWave: number;
}

function judge({ check, orders, money, itemId, ofRepeats, paidBySecondWave }: Evidence): Verdict {
  const ofDatabases = (name: InvariantName) => check.findings.filter(({ invariant }) => invariant === name);
  const breaches: Record<InvariantName, readonly Breach[]> = {
    S: ofDatabases("S"),
    U: ofDatabases("U"),
    C: check.uncompared ? [uncompared(check.uncompared)] : ofDatabases("C"),
    T: [...ofDatabases("T"), ...untold(check), ...overdue(orders)],
    R: [...ofRepeats, ...money.breaches],
  };
  const item = check.items.find((candidate) => candidate.itemId === itemId);
  const [ordered, initial] = [item?.ordered ?? 0, item?.initial ?? 0];
  return {
    units: initial,
    sold: ordered,
    orders,
    soldAgain: Math.max(0, orders.everOrdered - initial),
    paidBySecondWave,
    money,
    oversold: Math.max(0, ordered - initial),
    buyersTwice: check.findings.find(({ kind }) => kind === "buyers_twice")?.count ?? 0,
    withoutEnd: check.unfinished.undecided,
    invariants: (Object.keys(MEANINGS) as InvariantName[]).map((name) => ({
      name,
      means: MEANINGS[name],
      breaches: breaches[name],
    })),
  };
}

/** Whether all that there is to prove is proven. */
export function holds(verdict: Verdict): boolean {
  return verdict.oversold === 0 && verdict.invariants.every(({ breaches }) => breaches.length === 0);
}

function isAtRest({ uncompared, unfinished }: SaleCheck): boolean {
  const { undecided, pendingInRedis, eventsNotApplied } = unfinished;
  return uncompared === null && undecided + pendingInRedis + eventsNotApplied === 0;
}

function uncompared(why: NonNullable<SaleCheck["uncompared"]>): Breach {
  const what = {
    not_loaded: "the sale is not loaded in Redis",
    moving: "the two stores do not agree on what is under way",
  };
  return { what: what[why], count: 1, shown: [] };
}

function untold({ unfinished: { eventsNotApplied: count } }: SaleCheck): Breach[] {
  return count === 0 ? [] : [{ what: "events that Redis was not told of", count, shown: [] }];
}

function overdue({ overdue: count }: OrderCounts): Breach[] {
  return count === 0 ? [] : [{ what: "orders whose time has passed and that have not ended", count, shown: [] }];
}
