/** The buttons below the purchase. */
import { element } from "./dom.js";
import { ACTION_NAMES, type PurchaseAction } from "./order-sentences.js";

export interface ActionsView {
  show(actions: readonly PurchaseAction[]): void;
}

/** @param onGone where a visitor reads on whose button is gone */
export function createActionsView(
  place: HTMLElement,
  act: (action: PurchaseAction) => void,
  onGone: () => void,
): ActionsView {
  let shown = "";
  return {
    show(actions) {
      const next = actions.join();
      if (next === shown) return;
      shown = next;
      const hadFocus = place.contains(document.activeElement);
      place.hidden = actions.length === 0;
      place.replaceChildren(
        ...actions.map((action, at) => {
          const button = element("button", { type: "button", class: at === 0 ? "main" : "" }, ACTION_NAMES[action]);
          button.addEventListener("click", () => act(action));
          return button;
        }),
      );
      if (hadFocus) onGone();
    },
  };
}
