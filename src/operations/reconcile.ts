import type { Logger } from "../observability/logger.js";
import type { Metrics } from "../observability/metrics.js";
import { type CheckSaleDeps, checkSale, type Finding, type FindingKind, INVARIANTS } from "./check-sale.js";
import { forEachSale } from "./for-each-sale.js";
import type { WatchedSale } from "./watched-sales.js";

export interface ReconcileDeps extends CheckSaleDeps {
  readonly log: Logger;
  readonly metrics: Metrics;
}

/** A sale is a label, and each costs some reads over all its orders. */
const SALES_AT_MOST = 100;

/**
 * Checks the invariants of the sales that are under way, one after the other, and tells what was found by gauges and in the
 * log. It repairs nothing: that is an operator's word. Safe on any number of workers at once. A sale that can't be checked
 * doesn't stand in the others' way, and keeps the figures that it has. @throws the first one's error then
 */
export async function reconcile(deps: ReconcileDeps, sales: readonly WatchedSale[], boundMs: number): Promise<void> {
  const served = sales.filter((sale) => sale.served).slice(0, SALES_AT_MOST);
  await forgetOthers(deps.metrics, new Set(served.map(({ id }) => id)));
  await forEachSale(deps.log, served, async ({ id: sale }) => {
    const { findings, uncompared } = await checkSale(deps, sale, boundMs);
    for (const finding of findings) {
      const { invariant, kind, count } = finding;
      deps.log.error({ saleId: sale, invariant, kind, count, first: firstForLog(finding) }, "an invariant is broken");
    }
    for (const invariant of INVARIANTS) {
      // Not judged this time: what was found before stands until it is looked at again.
      if (invariant === "C" && uncompared === "moving") continue;
      const ofInvariant = findings.filter((finding) => finding.invariant === invariant);
      deps.metrics.findings.set(
        { sale, invariant },
        ofInvariant.reduce((sum, { count }) => sum + count, 0),
      );
    }
  });
  deps.metrics.reconciledAt.setToCurrentTime();
}

/** What was found of sales that are over is no alarm any more. */
async function forgetOthers({ findings }: Metrics, served: ReadonlySet<string>): Promise<void> {
  const { values } = await findings.get();
  for (const { labels } of values) {
    if (!served.has(String(labels.sale))) findings.remove(labels);
  }
}

/** Findings whose offenders are buyers, or that name them in what is expected of a request. */
const ABOUT_BUYERS: ReadonlySet<FindingKind> = new Set(["buyers_twice", "buyers_above_limit"]);
const NAMING_BUYERS: ReadonlySet<FindingKind> = new Set(["stories"]);

/** The first offender, without any buyer: their ids are for operators, not for the log. */
function firstForLog({ kind, shown: [first] }: Finding) {
  if (!first || ABOUT_BUYERS.has(kind)) return undefined;
  return NAMING_BUYERS.has(kind) ? { id: first.id } : first;
}
