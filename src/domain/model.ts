import type { SaleState } from "./sale-state.js";
import type { OrderStatus, ReservationReason, Stage } from "./stages.js";

/** Which request a thing belongs to. The requestId is unique within its sale only. */
export interface RequestKey {
  readonly saleId: string;
  /** lower-case UUID */
  readonly requestId: string;
}

/** A thing on sale, as it was created. */
export interface Item {
  readonly saleId: string;
  readonly id: string;
  readonly sku: string;
  readonly title: string;
  /** price of a unit in the currency's minor unit */
  readonly priceMinor: number;
  /** ISO 4217 */
  readonly currency: string;
  readonly initial: number;
}

/** A sale's row with its items, as the database tells it. */
export interface Sale {
  readonly id: string;
  readonly title: string;
  readonly state: SaleState;
  readonly stateVersion: number;
  readonly pauseReason: string | null;
  readonly opensAt: Date;
  readonly closesAt: Date;
  readonly maxPerBuyer: number;
  readonly paymentWindowSeconds: number;
  readonly epoch: number;
  readonly createdAt: Date;
  readonly items: readonly Item[];
}

/** A sale with what moves: remaining units by item id, and the number of the latest change. */
export interface LiveSale extends Sale {
  /** itemId → units that can be reserved now */
  readonly remaining: ReadonlyMap<string, number>;
  /** grows with every published change of state or stock */
  readonly version: number;
}

export interface Order {
  readonly saleId: string;
  readonly requestId: string;
  readonly buyerId: string;
  readonly itemId: string;
  readonly quantity: number;
  readonly totalMinor: number;
  readonly currency: string;
  readonly status: OrderStatus;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly payBy: Date;
  readonly paidAt: Date | null;
  /** what paid it, as the payment provider names it */
  readonly paymentRef: string | null;
}

/** An accepted request and what it has come to. */
export interface Reservation {
  readonly saleId: string;
  readonly requestId: string;
  readonly buyerId: string;
  readonly itemId: string;
  readonly quantity: number;
  readonly stage: Stage;
  readonly reason: ReservationReason | null;
  /** accepted requests still in front; null once decided, or where Redis can't tell */
  readonly ahead: number | null;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  /** undefined: not read; a stage with an order has one in the database */
  readonly order?: Order | null;
}

/** A page of a list: at most what was asked for, and whether there is more behind it. */
export interface Page<Row> {
  readonly rows: readonly Row[];
  readonly hasNextPage: boolean;
}
