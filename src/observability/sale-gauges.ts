import type { Gauge } from "prom-client";
import { type Series, withoutNought } from "./series.js";

/** What Redis tells of a sale. */
export interface SaleInRedisFigures {
  readonly pending: number;
  readonly remaining: number;
}

/** Jobs of a sale's queue, by the states that BullMQ has for them. */
export type JobFigures = Readonly<Record<string, number>>;

/** What the database tells of a sale; ages in seconds, 0 where there is nothing. */
export interface SaleInDatabaseFigures {
  readonly undecided: number;
  readonly oldestUndecidedSeconds: number;
  readonly overdue: number;
  readonly parked: number;
  readonly unappliedEvents: number;
  readonly oldestUnappliedSeconds: number;
  readonly unpaid: number;
  readonly overdueSeconds: number;
}

type BySale<Figures> = ReadonlyMap<string, Figures>;

/**
 * What was measured last in the stores. Each setting replaces what was there: a sale that it leaves out has no series any
 * more. What is measured is the same for everybody, so of several processes the highest is told.
 */
export interface SaleGauges {
  setInRedis(sales: BySale<SaleInRedisFigures>): void;
  setJobs(sales: BySale<JobFigures>): void;
  setInDatabase(sales: BySale<SaleInDatabaseFigures>): void;
  /** Money that is to be given back, of whichever sale: of some of it no order is known. */
  setDueRefunds(refunds: { readonly count: number; readonly oldestSeconds: number }): void;
  /** A store was measured just now: figures that stand still are seen by it. */
  measured(store: "redis" | "database"): void;
}

export function createSaleGauges(series: Series): SaleGauges {
  const bySale = (name: string, help: string) => series.gauge(name, help, "max", ["sale"]);
  const inRedis: GaugesOf<SaleInRedisFigures> = {
    pending: bySale("pending_requests", "Accepted requests that are not decided, by Redis"),
    remaining: bySale("remaining_units", "Units that can be reserved now, of all items"),
  };
  const inDatabase: GaugesOf<SaleInDatabaseFigures> = {
    undecided: bySale("undecided_requests", "Requests without an outcome, by the database"),
    oldestUndecidedSeconds: bySale(
      "oldest_undecided_age_seconds",
      "Age of the oldest undecided request, parked ones left out",
    ),
    overdue: bySale("overdue_requests", "Undecided requests that the forwarder should have looked at by now"),
    parked: bySale("parked_requests", "Undecided requests that wait for an operator"),
    unappliedEvents: bySale("unapplied_events", "Request events that Redis has yet to hear"),
    oldestUnappliedSeconds: bySale("oldest_unapplied_event_age_seconds", "Age of the oldest of them"),
    unpaid: bySale("unpaid_orders", "Orders that wait to be paid"),
    overdueSeconds: bySale(
      "unpaid_overdue_seconds",
      "How long the oldest unpaid order has outlived its payment window",
    ),
  };
  const refunds = withoutNought(series.gauge("refunds_due", "Payments that are to be given back", "max"));
  const oldestRefund = withoutNought(
    series.gauge("oldest_refund_due_age_seconds", "How long the oldest of them has been due", "max"),
  );
  const jobs = series.gauge("queue_jobs", "Jobs in a sale's queue", "max", ["sale", "state"]);
  const measured = series.gauge("measured_timestamp_seconds", "When a store was measured last", "max", ["store"]);

  return {
    setInRedis: (sales) => replace(inRedis, sales),
    setInDatabase: (sales) => replace(inDatabase, sales),
    setDueRefunds({ count, oldestSeconds }) {
      refunds.set(count);
      oldestRefund.set(oldestSeconds);
    },
    setJobs(sales) {
      jobs.reset();
      for (const [sale, states] of sales) {
        for (const [state, count] of Object.entries(states)) jobs.set({ sale, state }, count);
      }
    },
    measured: (store) => measured.setToCurrentTime({ store }),
  };
}

type GaugesOf<Figures> = { readonly [Figure in keyof Figures]: Gauge<"sale"> };

/** In one go: nobody reads in between. */
function replace<Figures extends object>(gauges: GaugesOf<Figures>, sales: BySale<Figures>): void {
  for (const figure of Object.keys(gauges) as (keyof Figures)[]) {
    gauges[figure].reset();
    for (const [sale, figures] of sales) gauges[figure].set({ sale }, figures[figure] as number);
  }
}
