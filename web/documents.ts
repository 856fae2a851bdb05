/** What the page asks the API, and the shape of the answers. */

/** The text of an operation, with the types of what it answers and takes. */
export type Document<Data, Variables> = string & { readonly data?: Data; readonly variables?: Variables };

export interface Item {
  readonly id: string;
  readonly title: string;
  /** price of a unit in the currency's minor unit */
  readonly priceMinor: number;
  readonly currency: string;
  readonly initial: number;
  readonly remaining: number;
}

export interface Sale {
  readonly id: string;
  readonly title: string;
  readonly state: "DRAFT" | "OPEN" | "PAUSED" | "CLOSED";
  readonly pauseReason: string | null;
  readonly opensAt: string;
  readonly closesAt: string;
  readonly items: readonly Item[];
  readonly version: number;
}

export interface Order {
  readonly id: string;
  readonly totalMinor: number;
  readonly currency: string;
  readonly status: "PENDING_PAYMENT" | "PAID" | "CANCELLED" | "EXPIRED" | "REFUND_PENDING" | "REFUNDED";
  readonly payBy: string;
}

export interface Reservation {
  readonly requestId: string;
  readonly item: { readonly id: string };
  readonly quantity: number;
  readonly status: "PENDING" | "QUEUED" | "SUCCESS" | "SOLD_OUT" | "FAILED" | "RELEASED";
  readonly reasonCode: string | null;
  /** in words for a buyer */
  readonly reason: string | null;
  readonly ahead: number | null;
  readonly order: Order | null;
  readonly version: number;
}

export type ReserveStatus =
  | "QUEUED"
  | "PENDING"
  | "DECIDED"
  | "SOLD_OUT"
  | "INSUFFICIENT"
  | "ALREADY_RESERVED"
  | "LIMIT_EXCEEDED"
  | "NOT_STARTED"
  | "ENDED"
  | "PAUSED"
  | "REQUEST_CONFLICT"
  | "BUSY";

export interface ReservePayload {
  readonly status: ReserveStatus;
  readonly reservation: Reservation | null;
  readonly message: string;
  readonly retryAfterMs: number | null;
}

const SALE = `fragment Face on Sale {
  id title state pauseReason opensAt closesAt version
  items { id title priceMinor currency initial remaining }
}`;

const RESERVATION = `fragment Request on Reservation {
  requestId item { id } quantity status reasonCode reason ahead version
  order { id totalMinor currency status payBy }
}`;

export const SERVER_TIME: Document<{ serverTime: string }, Record<string, never>> = "query Clock { serverTime }";

/** What there is to show: the newest open sales, and the newest one that is paused. */
export const RUNNING_SALES: Document<
  { serverTime: string } & Record<"open" | "paused", { edges: { node: Sale }[] }>,
  Record<string, never>
> = `query RunningSales {
  serverTime
  open: sales(first: 20, state: OPEN) { edges { node { ...Face } } }
  paused: sales(first: 1, state: PAUSED) { edges { node { ...Face } } }
}
${SALE}`;

export const SALE_BY_ID: Document<{ sale: Sale | null }, { id: string }> = `query SaleById($id: ID!) {
  sale(id: $id) { ...Face }
}
${SALE}`;

export const SALE_UPDATES: Document<{ saleUpdates: Sale }, { id: string }> = `subscription SaleUpdates($id: ID!) {
  saleUpdates(saleId: $id) { ...Face }
}
${SALE}`;

export const RESERVE: Document<
  { reserve: ReservePayload },
  { input: { saleId: string; itemId: string; quantity: number; requestId: string } }
> = `mutation Reserve($input: ReserveInput!) {
  reserve(input: $input) { status message retryAfterMs reservation { ...Request } }
}
${RESERVATION}`;

export const RESERVATION_BY_ID: Document<{ reservation: Reservation | null }, { saleId: string; requestId: string }> =
  `query ReservationById($saleId: ID!, $requestId: UUID!) {
  reservation(saleId: $saleId, requestId: $requestId) { ...Request }
}
${RESERVATION}`;

/** The one that is remembered, and the latest one: whichever of them tells more. */
export const REMEMBERED_AND_LATEST: Document<
  { remembered: Reservation | null; latest: Reservation | null },
  { saleId: string; requestId: string }
> = `query RememberedAndLatest($saleId: ID!, $requestId: UUID!) {
  remembered: reservation(saleId: $saleId, requestId: $requestId) { ...Request }
  latest: myReservation(saleId: $saleId) { ...Request }
}
${RESERVATION}`;

export const LATEST: Document<{ latest: Reservation | null }, { saleId: string }> = `query Latest($saleId: ID!) {
  latest: myReservation(saleId: $saleId) { ...Request }
}
${RESERVATION}`;

export const RESERVATION_UPDATES: Document<{ reservationUpdates: Reservation }, { saleId: string; requestId: string }> =
  `subscription ReservationUpdates($saleId: ID!, $requestId: UUID!) {
  reservationUpdates(saleId: $saleId, requestId: $requestId) { ...Request }
}
${RESERVATION}`;

/** Begins the payment of an order; `url` is where it is paid. */
export const REQUEST_PAYMENT: Document<{ requestPayment: { url: string } }, { orderId: string }> =
  `mutation RequestPayment($orderId: ID!) {
  requestPayment(orderId: $orderId) { url }
}`;

export const CANCEL_ORDER: Document<{ cancelOrder: { id: string } }, { orderId: string }> =
  `mutation CancelOrder($orderId: ID!) {
  cancelOrder(orderId: $orderId) { id }
}`;
