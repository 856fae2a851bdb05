import { type ReserveDeps, type ReserveInput, type ReserveOutcome, reserve } from "../operations/reserve.js";
import type { SoldOutGate } from "./sold-out-gate.js";

export interface AdmitDeps extends ReserveDeps {
  readonly soldOutGate: SoldOutGate;
}

/**
 * A buyer's call of `reserve`, answered in here where it is known that the item is sold out and the buyer was never
 * accepted for it. A turn of the event loop must have passed since the request arrived, so that news which arrived before
 * it were taken in.
 *
 * @throws SluiceError as `reserve` does
 */
export async function admit(deps: AdmitDeps, input: ReserveInput): Promise<ReserveOutcome> {
  if (!deps.soldOutGate.answers(input)) return reserve(deps, input);
  deps.metrics.reserves.begin()(input.saleId, "sold_out");
  return { kind: "sold_out" };
}
