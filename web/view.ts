/** Puts what is known onto the page, and changes only what differs, so that neither focus nor selection is ever lost. */
import type { Sale } from "./documents.js";
import { element, part, setText, setTextOrHide } from "./dom.js";
import type { Notice } from "./find-sale.js";
import type { Connection } from "./live.js";
import type { PurchaseAction, PurchaseText } from "./order-sentences.js";
import type { Purchase } from "./purchase.js";
import { phaseOf } from "./sale.js";
import { countdownText, phaseName, phaseNote, purchaseText, type SettlementState } from "./sentences.js";
import { createActionsView } from "./view-actions.js";
import { createItemsView } from "./view-items.js";

/** All that the page shows. */
export interface Shown {
  /** null while it is looked for, or where `notice` says why there is none */
  readonly sale: Sale | null;
  readonly notice: Notice | null;
  readonly purchase: Purchase;
  readonly settlement: SettlementState;
  readonly connection: Connection;
  readonly buyerId: string | null;
  /** the server's time */
  readonly nowMs: number | null;
}

export interface View {
  show(shown: Shown): void;
  announce(text: string): void;
  /** Where a visitor who has just pressed a button reads on. */
  focusPurchase(): void;
}

export interface ViewActions {
  buy(itemId: string): void;
  act(action: PurchaseAction): void;
  changeBuyer(): void;
}

export function createView({ buy, act, changeBuyer }: ViewActions): View {
  const phase = part("phase");
  const title = part("sale-title");
  const note = part("sale-note");
  const countdown = part("countdown");
  const countdownLabel = part("countdown-label");
  const countdownTime = part("countdown-time");
  const connection = part("connection");
  const purchase = part("purchase");
  const buyer = part("buyer");
  const status = part("status");
  const itemsSection = part("items-section");
  const items = createItemsView(part("items"), buy);
  const focusPurchase = () => part("purchase-title").focus();
  const actions = createActionsView(part("purchase-actions"), act, focusPurchase);
  part("change-buyer").addEventListener("click", changeBuyer);

  const showSale = ({ sale, notice, nowMs }: Shown) => {
    const present = sale ? phaseOf(sale, nowMs) : null;
    setText(title, sale?.title ?? notice?.title ?? "Looking for a sale…");
    setTextOrHide(phase, present ? phaseName(present) : "");
    document.body.dataset.phase = present ?? "none";
    setTextOrHide(note, sale && present ? phaseNote(sale, present) : (notice?.note ?? ""));
    part("newest").hidden = sale ? present !== "ended" : !notice?.elsewhere;
    const counted = sale && countdownText(sale, nowMs);
    countdown.hidden = !counted;
    setText(countdownLabel, counted?.label ?? "");
    setText(countdownTime, counted?.time ?? "");
  };

  const showPurchase = (text: PurchaseText | null) => {
    // What is hidden can't keep the focus.
    if (text === null && purchase.contains(document.activeElement)) title.focus();
    purchase.hidden = text === null;
    actions.show(text?.actions ?? []);
    if (text === null) return;
    purchase.dataset.tone = text.tone;
    setText(part("purchase-title"), text.title);
    setTextOrHide(part("purchase-what"), text.what);
    setTextOrHide(part("purchase-detail"), text.detail);
    showFacts(part("purchase-facts"), text.facts);
  };

  return {
    show(shown) {
      const { sale, nowMs } = shown;
      showSale(shown);
      const text = sale && purchaseText(shown.purchase, shown.settlement, sale, nowMs);
      showPurchase(text);
      itemsSection.hidden = sale === null;
      if (sale) items.show(sale, phaseOf(sale, nowMs), shown.purchase);
      connection.hidden = shown.connection !== "lost";
      setText(buyer, shown.buyerId === null ? "" : `You are ${shown.buyerId}`);
      document.title = [text?.title, sale?.title, "Sluice"].filter(Boolean).join(" – ");
    },
    announce: (text) => setText(status, text),
    focusPurchase,
  };
}

function showFacts(list: HTMLElement, facts: PurchaseText["facts"]): void {
  list.hidden = facts.length === 0;
  const names = facts.map(([name]) => name).join();
  // Only values change from second to second: they are put into what is there.
  if (list.dataset.names !== names) {
    list.dataset.names = names;
    list.replaceChildren(...facts.map(([name]) => element("div", {}, element("dt", {}, name), element("dd", {}))));
  }
  facts.forEach(([, value], at) => {
    const place = list.children[at]?.lastElementChild;
    if (place) setText(place, value);
  });
}
