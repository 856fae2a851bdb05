import { createSaleTally } from "./sale-tally.js";
import { QUICK_SECONDS, type Series } from "./series.js";

/** Counts and times the calls of reserve. */
export interface ReserveMeter {
  /** A call begins. Returns what says how it ended; `saleId` is empty where no such sale is known. */
  begin(): (saleId: string, outcome: string) => void;
  /** Whether something was counted for this sale. */
  knows(saleId: string): boolean;
}

export function createReserveMeter(series: Series): ReserveMeter {
  const inFlight = series.gauge("reserves_in_flight", "Calls of reserve that wait for their answer", "sum");
  const tally = createSaleTally(series, "reservations_total", "Answers of reserve");
  const duration = series.histogram("reserve_duration_seconds", "Time to an answer of reserve", QUICK_SECONDS, [
    "outcome",
  ]);
  return {
    begin() {
      inFlight.inc();
      const started = performance.now();
      return (saleId, outcome) => {
        inFlight.dec();
        tally.add(saleId, outcome);
        duration.observe({ outcome }, (performance.now() - started) / 1_000);
      };
    },
    knows: (saleId) => tally.has(saleId),
  };
}
