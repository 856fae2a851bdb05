import type { OrderStatus, Stage } from "./stages.js";

/** What happens to an order after it was made. */
export const ORDER_CHANGES = ["pay", "cancel", "expire", "refund", "restock", "writeOff"] as const;
export type OrderChange = (typeof ORDER_CHANGES)[number];

/** What a change does to an item's stock, in units of the order: 1 adds them, -1 takes them. */
export interface StockDelta {
  readonly initial: number;
  readonly available: number;
  readonly locked: number;
  readonly sold: number;
  readonly refundPending: number;
}

export interface OrderTransition {
  readonly from: OrderStatus;
  readonly to: OrderStatus;
  readonly fromStage: Stage;
  readonly toStage: Stage;
  readonly movement: "SELL" | "RELEASE" | "REFUND_START" | "REFUND_DONE" | "WRITE_OFF";
  readonly stock: StockDelta;
}

const NOTHING: StockDelta = { initial: 0, available: 0, locked: 0, sold: 0, refundPending: 0 };

/**
 * The one table of an order's life: PENDING_PAYMENT → PAID | CANCELLED | EXPIRED, PAID → REFUND_PENDING → REFUNDED. The
 * stock follows in the same transaction, with one movement; units that come back to `available` are what the request's event
 * carries to Redis. Units that are written off leave the sale altogether: `initial` with them, so that the sum holds.
 */
export const ORDER_TRANSITIONS: Readonly<Record<OrderChange, OrderTransition>> = {
  pay: {
    from: "PENDING_PAYMENT",
    to: "PAID",
    fromStage: "ORDERED",
    toStage: "PAID",
    movement: "SELL",
    stock: { ...NOTHING, locked: -1, sold: 1 },
  },
  cancel: {
    from: "PENDING_PAYMENT",
    to: "CANCELLED",
    fromStage: "ORDERED",
    toStage: "CANCELLED",
    movement: "RELEASE",
    stock: { ...NOTHING, locked: -1, available: 1 },
  },
  expire: {
    from: "PENDING_PAYMENT",
    to: "EXPIRED",
    fromStage: "ORDERED",
    toStage: "EXPIRED",
    movement: "RELEASE",
    stock: { ...NOTHING, locked: -1, available: 1 },
  },
  refund: {
    from: "PAID",
    to: "REFUND_PENDING",
    fromStage: "PAID",
    toStage: "REFUND_PENDING",
    movement: "REFUND_START",
    stock: { ...NOTHING, sold: -1, refundPending: 1 },
  },
  restock: {
    from: "REFUND_PENDING",
    to: "REFUNDED",
    fromStage: "REFUND_PENDING",
    toStage: "REFUNDED",
    movement: "REFUND_DONE",
    stock: { ...NOTHING, refundPending: -1, available: 1 },
  },
  writeOff: {
    from: "REFUND_PENDING",
    to: "REFUNDED",
    fromStage: "REFUND_PENDING",
    toStage: "REFUNDED",
    movement: "WRITE_OFF",
    stock: { ...NOTHING, refundPending: -1, initial: -1 },
  },
};

/** Statuses that hold stock for a buyer, who may then have no other order in the sale. */
export function isValid(status: OrderStatus): boolean {
  return status === "PENDING_PAYMENT" || status === "PAID" || status === "REFUND_PENDING";
}
