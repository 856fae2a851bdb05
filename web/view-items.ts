/** The items of the sale with their prices, their stock and their buttons. */

import type { Item, Sale } from "./documents.js";
import { element, setText } from "./dom.js";
import { mayBuy, type Purchase } from "./purchase.js";
import { isSoldOut, type Phase } from "./sale.js";
import { stockText } from "./sentences.js";
import { money } from "./text.js";

export interface ItemsView {
  show(sale: Sale, phase: Phase, purchase: Purchase): void;
}

interface ItemView {
  readonly row: HTMLElement;
  show(item: Item, phase: Phase, purchase: Purchase): void;
}

export function createItemsView(list: HTMLElement, buy: (itemId: string) => void): ItemsView {
  const views = new Map<string, ItemView>();
  return {
    show(sale, phase, purchase) {
      for (const item of sale.items) {
        let view = views.get(item.id);
        if (!view) {
          view = createItemView(item, buy);
          views.set(item.id, view);
          list.append(view.row);
        }
        view.show(item, phase, purchase);
      }
    },
  };
}

function createItemView(item: Item, buy: (itemId: string) => void): ItemView {
  const stock = element("p", { class: "stock" });
  const bar = element("span", { class: "bar", "aria-hidden": "true" });
  const word = element("span", {});
  const button = element(
    "button",
    { type: "button", class: "buy" },
    word,
    element("span", { class: "unseen" }, ` ${item.title}`),
  );
  // Not `disabled`: a disabled button loses the focus, and a screen reader passes it by.
  button.addEventListener("click", () => {
    if (button.getAttribute("aria-disabled") !== "true") buy(item.id);
  });
  const row = element(
    "li",
    {},
    element("h3", {}, item.title),
    element("p", { class: "price" }, money(item.priceMinor, item.currency)),
    element("div", { class: "left" }, stock, bar),
    button,
  );
  return {
    row,
    show(next, phase, purchase) {
      const gone = isSoldOut(next);
      const active = phase === "open" && !gone && mayBuy(purchase);
      setText(stock, stockText(next));
      setText(word, gone ? "Sold out" : "Buy");
      button.setAttribute("aria-disabled", String(!active));
      row.dataset.gone = String(gone);
      bar.style.setProperty("--left", String(next.initial > 0 ? next.remaining / next.initial : 0));
    },
  };
}
