export const SALE_STATES = ["DRAFT", "OPEN", "PAUSED", "CLOSED"] as const;
export type SaleState = (typeof SALE_STATES)[number];

export const SALE_ACTIONS = ["open", "pause", "resume", "close"] as const;
export type SaleAction = (typeof SALE_ACTIONS)[number];

/** Which states an action may start from, and where it leads: DRAFT → OPEN ⇄ PAUSED → CLOSED. */
export const SALE_TRANSITIONS: Record<SaleAction, { from: readonly SaleState[]; to: SaleState }> = {
  open: { from: ["DRAFT"], to: "OPEN" },
  pause: { from: ["OPEN"], to: "PAUSED" },
  resume: { from: ["PAUSED"], to: "OPEN" },
  close: { from: ["OPEN", "PAUSED"], to: "CLOSED" },
};

/** Change numbers (`seq`) of an epoch start at epoch × this. */
export const SEQ_PER_EPOCH = 1_000_000;
