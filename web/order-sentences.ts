/** What the visitor is told of an order, and what he can do about it. */
import type { Order, Reservation, Sale } from "./documents.js";
import { isSoldOut, phaseOf } from "./sale.js";
import type { Settling } from "./settling.js";
import { countdown, money, timeOfDay } from "./text.js";

/** What a button below the purchase does. */
export type PurchaseAction = "pay" | "ask_back" | "give_back" | "keep" | "buy_again";

export const ACTION_NAMES: Record<PurchaseAction, string> = {
  pay: "Pay",
  ask_back: "Give back",
  give_back: "Yes, give it back",
  keep: "Keep it",
  buy_again: "Buy again",
};

/** A purchase in words; `tone` is what it means for the visitor. */
export interface PurchaseText {
  readonly title: string;
  /** the item and how many of it, where there is a reservation */
  readonly what: string;
  readonly detail: string;
  readonly tone: "waiting" | "good" | "over";
  readonly facts: readonly (readonly [name: string, value: string])[];
  readonly actions: readonly PurchaseAction[];
}

type OrderText = Pick<PurchaseText, "title" | "detail" | "tone" | "facts" | "actions">;

/** An order that the visitor has. Null for the order: it is there, and the database can't be asked for it just now. */
export function haveText(order: Order | null, settling: Settling, nowMs: number | null): OrderText {
  const facts = orderFacts(order, nowMs);
  const good = (title: string, detail = ""): OrderText => ({ title, detail, tone: "good", facts, actions: [] });
  if (order?.status === "PAID") return good("Paid. Thank you");
  if (order?.status === "REFUND_PENDING") return good("Being refunded", "The seller gives your money back.");
  if (!order) return good("Yours");
  const late = nowMs !== null && Date.parse(order.payBy) <= nowMs;
  const unpaid = (detail: string): OrderText =>
    late ? good("Yours", "The time to pay is over.") : { ...good("Yours", detail), actions: ["pay", "ask_back"] };
  switch (settling.kind) {
    case "paying":
      return { ...good("Paying", troubleText(settling) || "It is being confirmed. You pay once."), tone: "waiting" };
    case "giving_back":
      return { ...good("Giving it back", troubleText(settling)), tone: "waiting" };
    case "asking_back":
      return { ...good("Give it back?", "Somebody else may get it then."), actions: ["keep", "give_back"] };
    case "failed":
      return unpaid(`That did not work. ${settling.message}`);
    case "nothing":
      return unpaid("Pay for it to keep it.");
  }
}

/** An order that the visitor had. */
export function hadText(reservation: Reservation, moneyBack: boolean, sale: Sale, nowMs: number | null): OrderText {
  const titles: Partial<Record<string, string>> = {
    CANCELLED_BY_BUYER: "Given back",
    CANCELLED_BY_OPERATOR: "Cancelled",
    PAYMENT_EXPIRED: "Not paid in time",
    REFUNDED: "Refunded",
  };
  const item = sale.items.find(({ id }) => id === reservation.item.id);
  const again = item !== undefined && !isSoldOut(item) && phaseOf(sale, nowMs) === "open";
  const detail = [
    reservation.reason ?? "The order has ended, and its units are on sale again.",
    ...(moneyBack ? ["Your payment came too late: the money is given back."] : []),
    ...(again ? ["You may buy it again."] : []),
  ].join(" ");
  return {
    title: titles[reservation.reasonCode ?? ""] ?? "No longer yours",
    detail,
    tone: "over",
    facts: [],
    actions: again ? ["buy_again"] : [],
  };
}

function orderFacts(order: Order | null, nowMs: number | null): [string, string][] {
  if (!order) return [];
  const total: [string, string] = ["Total", money(order.totalMinor, order.currency)];
  const id: [string, string] = ["Order", order.id];
  if (order.status !== "PENDING_PAYMENT" || nowMs === null) return [total, id];
  const payByMs = Date.parse(order.payBy);
  const left = payByMs > nowMs ? countdown(payByMs - nowMs) : "none";
  return [total, ["Pay by", timeOfDay(payByMs, nowMs)], ["Time left", left], id];
}

function troubleText({ trouble }: Extract<Settling, { trouble: unknown }>): string {
  switch (trouble) {
    case null:
      return "";
    case "busy":
      return "Very many people are asking. It is tried again by itself, and counts only once.";
    case "unavailable":
      return "The shop can't answer right now. It is tried again by itself, and counts only once.";
    case "unreachable":
      return "The shop can't be reached. It is tried again by itself, and counts only once.";
  }
}
