/** The storefront: one sale, and one visitor in it. */
import { createAnnouncer } from "./announcer.js";
import { createAsk, payAt } from "./api.js";
import { BUYER_KEY, type Buyer, createBuyers } from "./buyer.js";
import { createServerClock, createSleepDetector } from "./clock.js";
import { SALE_UPDATES, type Sale, SERVER_TIME } from "./documents.js";
import { findSale, type Notice } from "./find-sale.js";
import { createIntentions, intentionKey } from "./intention.js";
import { type Connection, createLive } from "./live.js";
import { newsBetween } from "./news.js";
import type { PurchaseAction } from "./order-sentences.js";
import type { Purchase } from "./purchase.js";
import { createPurchaseFlow, type PurchaseFlow } from "./purchase-flow.js";
import { countdownTarget, newerSale, phaseOf } from "./sale.js";
import { createSettlement, NOTHING, type Settlement } from "./settling.js";
import { createStorage } from "./storage.js";
import { untilNextSecond } from "./text.js";
import { createView, type Shown } from "./view.js";
import { backoffMs, createWaits } from "./waits.js";

const MEASURE_EVERY_MS = 5 * 60_000;

let sale: Sale | null = null;
let notice: Notice | null = null;
let buyer: Buyer | null = null;
let flow: PurchaseFlow | null = null;
let settlement: Settlement | null = null;
let connection: Connection = "starting";
let shown: Shown | null = null;
let entering: Purchase = { kind: "looking", trouble: null };
let tick: ReturnType<typeof setTimeout> | undefined;

const waits = createWaits();
const storage = createStorage(() => localStorage);
const buyers = createBuyers(storage, () => {
  entering = { kind: "stranger" };
  visit(entering);
});
const ask = createAsk(buyers);
const clock = createServerClock(async () => {
  const answer = await ask(SERVER_TIME, {});
  return answer.kind === "data" ? Date.parse(answer.data.serverTime) : null;
});
const live = createLive(buyers, waits, (next) => {
  const returned = connection === "lost" && next === "connected";
  connection = next;
  render();
  if (returned) lookAgain();
});
const view = createView({
  buy(itemId) {
    flow?.buy(itemId);
    view.focusPurchase();
  },
  act,
  changeBuyer() {
    void buyers.change().then((next) => {
      if (next) visit({ kind: "idle" });
      announcer.say("buyer", next ? "You are somebody else now." : "The shop can't be reached.");
    });
  },
});
const announcer = createAnnouncer(view.announce);
const slept = createSleepDetector();

void start();

async function start(): Promise<void> {
  render();
  const measured = measureClock();
  sale = await findSale(ask, waits, new URLSearchParams(location.search).get("sale"), (next) => {
    notice = next;
    render();
  });
  // What is in the address survives a reload, also when a newer sale opens or this one is paused.
  history.replaceState(null, "", `?sale=${encodeURIComponent(sale.id)}`);
  live.follow(SALE_UPDATES, { id: sale.id }, ({ saleUpdates }) => {
    sale = newerSale(sale, saleUpdates);
    render();
  });
  await measured;
  visit(entering);
}

/** Begins the visit of the present buyer, and ends that of whoever was here before. */
function visit(first: Purchase): void {
  const before = buyer;
  buyer = buyers.read();
  if (!sale || !buyer) return;
  flow?.stop();
  settlement?.stop();
  const askAsBuyer = createAsk(buyers, buyer.buyerId);
  settlement = createSettlement({ ask: askAsBuyer, payAt, waits, look: () => flow?.look(), onChange: render });
  flow = createPurchaseFlow(
    {
      ask: askAsBuyer,
      live,
      waits,
      saleId: sale.id,
      intentions: createIntentions(storage, intentionKey(sale.id, buyer.buyerId)),
      now: clock.now,
      onChange: render,
    },
    first,
  );
  flow.setVisible(!document.hidden);
  if (before && before.buyerId !== buyer.buyerId) live.reconnect();
  if (first.kind === "looking") flow.look();
  render();
}

/** The buttons below the purchase. */
function act(action: PurchaseAction): void {
  const { purchase } = flow ?? {};
  if (action === "pay") settlement?.pay();
  else if (action === "ask_back") settlement?.askBack();
  else if (action === "keep") settlement?.keep();
  else if (action === "give_back") settlement?.giveBack();
  else if (purchase?.kind === "reserved") flow?.buy(purchase.reservation.item.id);
}

function render(): void {
  clearTimeout(tick);
  const nowMs = clock.now();
  const purchase: Purchase = flow?.purchase ?? { kind: "looking", trouble: null };
  settlement?.hear(purchase);
  const { settling = NOTHING, moneyBack = false } = settlement ?? {};
  const next: Shown = {
    sale,
    notice,
    purchase,
    settlement: { settling, moneyBack },
    connection,
    buyerId: buyer?.buyerId ?? null,
    nowMs,
  };
  view.show(next);
  for (const { topic, text } of newsBetween(shown, next)) announcer.say(topic, text);
  shown = next;
  tick = setTimeout(onTick, untilNextChange(next));
}

function onTick(): void {
  if (slept(performance.now(), Date.now())) lookAgain();
  render();
}

/** Milliseconds until one of the countdowns shows another second. */
function untilNextChange({ sale, purchase, nowMs }: Shown): number {
  if (!sale || nowMs === null) return 1_000;
  const payBy = purchase.kind === "reserved" ? purchase.reservation.order?.payBy : undefined;
  const targets = [countdownTarget(sale, phaseOf(sale, nowMs)), payBy === undefined ? null : Date.parse(payBy)];
  return Math.min(1_000, ...targets.map((target) => (target === null ? 1_000 : untilNextSecond(target, nowMs))));
}

/** After an absence, of the connection, the visitor or the whole device: what may have changed meanwhile is asked for. */
function lookAgain(): void {
  waits.wake();
  void measureClock();
  flow?.look();
}

/** Measures until there is an answer; later ones only make it more exact. */
async function measureClock(): Promise<void> {
  for (let attempt = 0; !(await clock.measure()) && clock.now() === null; attempt += 1) {
    await waits.pause(backoffMs(attempt, Math.random()));
  }
  render();
}

setInterval(() => !document.hidden && void measureClock(), MEASURE_EVERY_MS);
addEventListener("online", () => waits.wake());
addEventListener("offline", () => live.drop());
addEventListener("pageshow", (event) => event.persisted && lookAgain());
document.addEventListener("visibilitychange", () => {
  flow?.setVisible(!document.hidden);
  if (!document.hidden) lookAgain();
});
addEventListener("storage", ({ key }) => {
  // Another tab of the same browser.
  if (key === BUYER_KEY && buyers.read()?.buyerId !== buyer?.buyerId) visit({ kind: "looking", trouble: null });
  else if (sale && buyer && key === intentionKey(sale.id, buyer.buyerId)) flow?.look();
});
