/** Carries a purchase through: remembers it, sends it, sends it again, follows it, finds it again. */
import type { Ask } from "./api.js";
import {
  LATEST,
  REMEMBERED_AND_LATEST,
  RESERVATION_BY_ID,
  RESERVATION_UPDATES,
  RESERVE,
  type Reservation,
} from "./documents.js";
import { type Intentions, newRequestId } from "./intention.js";
import type { Live, Stop } from "./live.js";
import {
  type Answer,
  afterAnswer,
  afterHearing,
  afterLooking,
  isLive,
  mayBuy,
  movesUnseen,
  mustSend,
  type Purchase,
  troubleOf,
} from "./purchase.js";
import { backoffMs, type Waits } from "./waits.js";

export interface PurchaseFlow {
  readonly purchase: Purchase;
  /** The visitor wants a unit of this item. Does nothing while he has, or may have, one. */
  buy(itemId: string): void;
  /** Asks what the server knows: at first, on return from an outage, when another tab may have bought. */
  look(): void;
  /** Whether anybody sees the page: the place in line is asked for only then. */
  setVisible(visible: boolean): void;
  /** The end of this buyer's visit: nothing is sent and told any more. */
  stop(): void;
}

export interface PurchaseFlowDeps {
  readonly ask: Ask;
  readonly live: Live;
  readonly waits: Waits;
  readonly intentions: Intentions;
  readonly saleId: string;
  /** the server's time, if known */
  readonly now: () => number | null;
  readonly onChange: (purchase: Purchase) => void;
}

const AHEAD_EVERY_MS = 2_000;

/** @param first what is shown until something is known */
export function createPurchaseFlow(deps: PurchaseFlowDeps, first: Purchase): PurchaseFlow {
  const { ask, live, waits, intentions, saleId } = deps;
  let purchase = first;
  let stopped = false;
  let visible = true;
  let sending = false;
  let looking = false;
  let lookAgain = false;
  let polling = false;
  let followed: { readonly requestId: string; readonly stop: Stop } | null = null;

  const become = (next: Purchase) => {
    if (stopped || next === purchase) return;
    purchase = next;
    remember();
    follow();
    if (mustSend(purchase)) void send();
    void pollAhead();
    deps.onChange(purchase);
  };

  const remember = () => {
    if (purchase.kind === "asking" || purchase.kind === "reserved") intentions.save(purchase.intention);
    else if (purchase.kind === "refused" || purchase.kind === "idle") intentions.forget();
  };

  /** Keeps one subscription open: to the request that is being asked for or held. */
  const follow = () => {
    const requestId =
      purchase.kind === "asking" || (purchase.kind === "reserved" && isLive(purchase.reservation))
        ? purchase.intention.requestId
        : null;
    if (followed?.requestId === requestId || (!followed && requestId === null)) return;
    followed?.stop();
    followed = requestId === null ? null : { requestId, stop: followOne(requestId) };
  };
  const followOne = (requestId: string) =>
    live.follow(RESERVATION_UPDATES, { saleId, requestId }, ({ reservationUpdates }) => hear(reservationUpdates));

  const hear = (reservation: Reservation) => {
    if ("intention" in purchase && purchase.intention.requestId === reservation.requestId) {
      become(afterHearing(purchase, reservation));
    }
  };

  /** Sends the same request until it is known to be durable, or refused. */
  const send = async () => {
    if (sending) return;
    sending = true;
    for (let attempt = 0; !stopped && mustSend(purchase); attempt += 1) {
      const { requestId, itemId, quantity } = purchase.intention;
      const answer = await ask(RESERVE, { input: { saleId, itemId, quantity, requestId } });
      if (stopped || !("intention" in purchase) || purchase.intention.requestId !== requestId) continue;
      const after = afterAnswer(purchase, answer, attempt, Math.random());
      become(after.purchase);
      if (after.againInMs !== null) await waits.pause(after.againInMs);
    }
    sending = false;
  };

  const find = async (): Promise<Answer<{ remembered: Reservation | null; latest: Reservation | null }>> => {
    const known = "intention" in purchase ? purchase.intention : intentions.load();
    if (known) return ask(REMEMBERED_AND_LATEST, { saleId, requestId: known.requestId });
    const answer = await ask(LATEST, { saleId });
    return answer.kind === "data" ? { kind: "data", data: { remembered: null, ...answer.data } } : answer;
  };

  const look = async () => {
    // What happened after the question was sent isn't in its answer.
    lookAgain = true;
    if (looking) return;
    looking = true;
    for (let attempt = 0; lookAgain && !stopped; attempt += 1) {
      lookAgain = false;
      const answer = await find();
      if (stopped) break;
      if (answer.kind === "data") {
        become(afterLooking(purchase, intentions.load(), answer.data, deps.now()));
        continue;
      }
      const trouble = troubleOf(answer.code);
      if (purchase.kind === "looking") become(trouble ? { kind: "looking", trouble } : { kind: "idle" });
      if (!trouble) continue;
      await waits.pause(Math.max(backoffMs(attempt, Math.random()), answer.retryAfterMs ?? 0));
      lookAgain = true;
    }
    looking = false;
  };

  /** While in line and seen: how many are ahead. The subscription tells only of changes of state. */
  const pollAhead = async () => {
    if (polling) return;
    polling = true;
    while (visible && !stopped && movesUnseen(purchase)) {
      await waits.pause(AHEAD_EVERY_MS * (0.8 + 0.4 * Math.random()));
      if (!visible || stopped || !movesUnseen(purchase)) break;
      const answer = await ask(RESERVATION_BY_ID, { saleId, requestId: purchase.intention.requestId });
      if (answer.kind === "data" && answer.data.reservation) hear(answer.data.reservation);
    }
    polling = false;
  };

  return {
    get purchase() {
      return purchase;
    },
    buy(itemId) {
      const pressedAtMs = deps.now();
      if (pressedAtMs === null || !mayBuy(purchase)) return;
      const intention = { requestId: newRequestId(), itemId, quantity: 1, pressedAtMs, accepted: false };
      become({ kind: "asking", intention, trouble: null });
    },
    look: () => void look(),
    setVisible(next) {
      visible = next;
      void pollAhead();
    },
    stop() {
      stopped = true;
      followed?.stop();
      waits.wake();
    },
  };
}
