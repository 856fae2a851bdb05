import type { Counter } from "prom-client";
import type { Series } from "./series.js";

/** Answered, or sent to Redis: since the buyer may have been accepted, or to ask whether it still is as it was. */
export type GateOutcome = "answer" | "maybe" | "probe";

/** Counts what the sold-out gate does. */
export interface SoldOutGateMeter {
  /** A request met a gate that was shut. */
  met(outcome: GateOutcome): void;
  /** gates that were shut and are so no longer, by what opened them */
  readonly opened: Counter<"by">;
  /** readings of an item's buyers, by how they ended */
  readonly filters: Counter<"outcome">;
  /** Has the number of items with a gate told from now on. */
  watchItems(count: () => number): void;
}

export function createSoldOutGateMeter(series: Series): SoldOutGateMeter {
  // Plain numbers, handed over when they are read: this is the most frequent answer of a sale that is over.
  const met: Record<GateOutcome, number> = { answer: 0, maybe: 0, probe: 0 };
  series.counter("sold_out_gate_requests_total", "Requests that met a shut sold-out gate", ["outcome"], (counter) => {
    counter.reset();
    for (const [outcome, times] of Object.entries(met)) counter.inc({ outcome }, times);
  });
  const opened = series.counter("sold_out_gate_opened_total", "Sold-out gates that were opened", ["by"]);
  const filters = series.counter("sold_out_gate_filters_total", "Readings of the buyers of a sold-out item", [
    "outcome",
  ]);
  for (const by of ["event", "reply", "lease", "silence"]) opened.inc({ by }, 0);
  for (const outcome of ["read", "too_many", "failed"]) filters.inc({ outcome }, 0);
  let count = () => 0;
  series.gauge("sold_out_gate_items", "Items that have a sold-out gate", "sum", [], (gauge) => gauge.set(count()));
  return {
    met(outcome) {
      met[outcome] += 1;
    },
    opened,
    filters,
    watchItems(ofItems) {
      count = ofItems;
    },
  };
}
