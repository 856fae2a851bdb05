/** What the visitor is told: of the sale, and of his own purchase. */
import type { Item, Sale } from "./documents.js";
import { hadText, haveText, type PurchaseText } from "./order-sentences.js";
import type { Purchase, Refusal, Trouble } from "./purchase.js";
import { countdownTarget, type Phase, phaseOf } from "./sale.js";
import type { Settlement } from "./settling.js";
import { countdown, grouped, units } from "./text.js";

/** A short name for what the sale is. */
export function phaseName(phase: Phase): string {
  const names: Record<Phase, string> = {
    unknown: "On sale",
    before: "Not open yet",
    open: "Open",
    paused: "Paused",
    ended: "Ended",
  };
  return names[phase];
}

/** More about it, where its name doesn't say enough. */
export function phaseNote(sale: Sale, phase: Phase): string {
  if (phase === "paused") return `The seller has paused this sale${sale.pauseReason ? `: ${sale.pauseReason}` : ""}.`;
  return phase === "ended" ? "Nothing can be bought in this sale any more." : "";
}

export function countdownText(
  sale: Sale,
  nowMs: number | null,
): { readonly label: string; readonly time: string } | null {
  const phase = phaseOf(sale, nowMs);
  const target = countdownTarget(sale, phase);
  if (target === null || nowMs === null) return null;
  return { label: phase === "before" ? "Opens in" : "Closes in", time: countdown(target - nowMs) };
}

/** What the visitor does about his order at the moment. */
export type SettlementState = Pick<Settlement, "settling" | "moneyBack">;

/** Null while there is nothing to say. */
export function purchaseText(
  purchase: Purchase,
  settlement: SettlementState,
  sale: Sale,
  nowMs: number | null,
): PurchaseText | null {
  switch (purchase.kind) {
    case "idle":
      return null;
    case "looking":
      // An answer is there in a moment; only where it isn't there is something to say.
      return purchase.trouble ? waiting("Looking up what you have", troubleText(purchase.trouble)) : null;
    case "asking":
      return waiting("Asking for it", purchase.trouble ? troubleText(purchase.trouble) : "Nothing is yours yet.");
    case "refused":
      return over(...refusalText(purchase.why, purchase.message));
    case "stranger":
      return over(
        "You are a new visitor now",
        "Your visitor pass is no longer valid, and it could not be renewed. What you had belongs to the visitor that you were.",
      );
    case "reserved":
      return reservedText(purchase, settlement, sale, nowMs);
  }
}

function reservedText(
  purchase: Extract<Purchase, { kind: "reserved" }>,
  { settling, moneyBack }: SettlementState,
  sale: Sale,
  nowMs: number | null,
): PurchaseText {
  const { reservation, existing, trouble } = purchase;
  const { status, ahead, quantity, order } = reservation;
  const item = sale.items.find(({ id }) => id === reservation.item.id);
  const what = `${grouped(quantity)} × ${item?.title ?? "an item"}`;
  const before = existing ? "You already had a reservation in this sale: this one. " : "";
  const reason = reservation.reason ?? "";
  switch (status) {
    case "PENDING":
      return waiting(
        "Almost in line",
        `${before}${trouble ? troubleText(trouble) : "Held for you, and being confirmed."}`,
        what,
      );
    case "QUEUED":
      return waiting(
        lineText(ahead),
        `${before}Held for you. You keep your place if you reload or close this page.`,
        what,
      );
    case "SUCCESS": {
      const text = haveText(order, settling, nowMs);
      return { ...text, what, detail: `${before}${text.detail}` };
    }
    case "SOLD_OUT":
      return over("Sold out", reason || "The last units were gone before it was your turn.", what);
    case "FAILED":
      return over("That did not work", `${reason || "Your order could not be written."} You may try again.`, what);
    case "RELEASED":
      return { ...hadText(reservation, moneyBack, sale, nowMs), what };
  }
}

function lineText(ahead: number | null): string {
  if (ahead === null) return "In line";
  return ahead === 0 ? "In line: you are next" : `In line: ${grouped(ahead)} ahead`;
}

function refusalText(why: Refusal, message: string): [title: string, detail: string] {
  switch (why) {
    case "SOLD_OUT":
      return ["Sold out", "Somebody else was faster. If units come back, you may try again."];
    case "INSUFFICIENT":
      return ["Not enough left", message];
    case "LIMIT_EXCEEDED":
      return ["That is more than one may have", message];
    case "NOT_STARTED":
      return ["Not open yet", "The sale has not started. The button comes alive when it does."];
    case "ENDED":
      return ["The sale has ended", "Your request came too late."];
    case "PAUSED":
      return ["The sale is paused", "Nothing is sold at the moment. Try again when it goes on."];
    case "REQUEST_CONFLICT":
      return ["That did not work", "Your request got mixed up with another one. Please try again."];
    case "ERROR":
      return ["That did not work", message];
  }
}

function troubleText(trouble: Trouble): string {
  switch (trouble) {
    case "busy":
      return "Very many people are asking. Yours is sent again by itself, and counts only once.";
    case "unavailable":
      return "The shop can't answer right now. Your request is sent again by itself, and counts only once.";
    case "unreachable":
      return "The shop can't be reached. Your request is sent again by itself, and counts only once.";
  }
}

function waiting(title: string, detail: string, what = ""): PurchaseText {
  return { title, what, detail, tone: "waiting", facts: [], actions: [] };
}

function over(title: string, detail: string, what = ""): PurchaseText {
  return { title, what, detail, tone: "over", facts: [], actions: [] };
}

/** How much is left of an item. */
export function stockText(item: Item): string {
  return item.remaining <= 0
    ? `Sold out, ${units(item.initial)} in all`
    : `${grouped(item.remaining)} of ${grouped(item.initial)} left`;
}
