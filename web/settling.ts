/** What the visitor does about an order that isn't paid: pays it, or gives it back. */
import type { Ask, PayAt } from "./api.js";
import { CANCEL_ORDER, type Order, REQUEST_PAYMENT } from "./documents.js";
import { type Answer, type Purchase, type Trouble, troubleOf } from "./purchase.js";
import { backoffMs, type Waits } from "./waits.js";

export type Settling =
  | { readonly kind: "nothing" }
  /** sent, perhaps several times; also when it is answered, until the order is told to be paid */
  | { readonly kind: "paying"; readonly trouble: Trouble | null }
  /** he has pressed "Give back": does he mean it? */
  | { readonly kind: "asking_back" }
  | { readonly kind: "giving_back"; readonly trouble: Trouble | null }
  | { readonly kind: "failed"; readonly message: string };

export interface Settlement {
  readonly settling: Settling;
  /** whether money was sent for the present order that could not buy it */
  readonly moneyBack: boolean;
  /** What there is to settle has changed, or not. */
  hear(purchase: Purchase): void;
  pay(): void;
  /** Asks whether he means it. */
  askBack(): void;
  /** He doesn't. */
  keep(): void;
  /** He does. */
  giveBack(): void;
  /** The end of this buyer's visit: nothing is sent any more. */
  stop(): void;
}

export interface SettlementDeps {
  readonly ask: Ask;
  readonly payAt: PayAt;
  readonly waits: Waits;
  /** asks what the server knows of the purchase */
  readonly look: () => void;
  readonly onChange: () => void;
}

export const NOTHING: Settling = { kind: "nothing" };

/** Longer than most outages; then the visitor presses again, or not. */
const TRIES = 8;

export function createSettlement({ ask, payAt, waits, look, onChange }: SettlementDeps): Settlement {
  let order: Order | null = null;
  let settling: Settling = NOTHING;
  let moneyBack = false;
  let stopped = false;

  const become = (next: Settling) => {
    settling = next;
    onChange();
  };
  const isUnder = (id: string, kind: Settling["kind"]) => !stopped && order?.id === id && settling.kind === kind;

  /** Sends the same until there is an answer, for as long as the order is unpaid. Repeats are harmless. */
  const carryOut = async (kind: "paying" | "giving_back", send: (orderId: string) => Promise<Answer<unknown>>) => {
    if (!order || settling.kind === "paying" || settling.kind === "giving_back") return;
    const { id } = order;
    become({ kind, trouble: null });
    for (let attempt = 0; isUnder(id, kind); attempt += 1) {
      const answer = await send(id);
      if (!isUnder(id, kind)) return;
      // What has become of it the server says: by the subscription, or when it is asked.
      if (answer.kind === "data" || answer.code === "CONFLICT") return look();
      const trouble = troubleOf(answer.code);
      if (!trouble || attempt + 1 === TRIES) return become({ kind: "failed", message: answer.message });
      become({ kind, trouble });
      await waits.pause(Math.max(backoffMs(attempt, Math.random()), answer.retryAfterMs ?? 0));
    }
  };

  /** Has the provider begin the payment, and pays there. The same order is the same payment, however often. */
  const payOnce = async (orderId: string): Promise<Answer<unknown>> => {
    const begun = await ask(REQUEST_PAYMENT, { orderId });
    if (begun.kind === "error") return begun;
    const paid = await payAt(begun.data.requestPayment.url);
    if (paid.kind === "data" && paid.data.outcome === "REFUND_DUE") moneyBack = true;
    return paid;
  };

  return {
    get settling() {
      return settling;
    },
    get moneyBack() {
      return moneyBack;
    },
    hear(purchase) {
      const next = unpaidOrder(purchase);
      if (next?.id === order?.id) return;
      if (next) moneyBack = false;
      order = next;
      settling = NOTHING;
    },
    pay: () => void carryOut("paying", payOnce),
    askBack() {
      if (order && (settling.kind === "nothing" || settling.kind === "failed")) become({ kind: "asking_back" });
    },
    keep() {
      if (settling.kind === "asking_back") become(NOTHING);
    },
    giveBack() {
      if (settling.kind === "asking_back") void carryOut("giving_back", (orderId) => ask(CANCEL_ORDER, { orderId }));
    },
    stop() {
      stopped = true;
    },
  };
}

function unpaidOrder(purchase: Purchase): Order | null {
  if (purchase.kind !== "reserved" || purchase.reservation.status !== "SUCCESS") return null;
  const { order } = purchase.reservation;
  return order?.status === "PENDING_PAYMENT" ? order : null;
}
