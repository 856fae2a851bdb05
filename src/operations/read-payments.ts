import type { Database } from "../db/client.js";
import { type DueRefundsQuery, findDueRefunds, type Payment } from "../db/payments.js";
import type { Page } from "../domain/model.js";

export interface ReadPaymentsDeps {
  readonly reads: Database;
}

/** A page of the money that is to be given back, due the longest first. */
export function listDueRefunds(deps: ReadPaymentsDeps, query: DueRefundsQuery): Promise<Page<Payment>> {
  return findDueRefunds(deps.reads, query);
}
