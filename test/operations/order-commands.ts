/** What can happen to a sale's orders, as fast-check makes it up, done to a model and to the stores alike. */
import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { orderIdOf } from "../../src/domain/ids.js";
import { adjustStock } from "../../src/operations/adjust-stock.js";
import { cancelOrder } from "../../src/operations/cancel.js";
import { changeSaleState } from "../../src/operations/change-sale-state.js";
import { loadSale } from "../../src/operations/load.js";
import { pay } from "../../src/operations/pay.js";
import { completeRefund, refundOrder, refundPayment } from "../../src/operations/refund.js";
import { relay } from "../../src/operations/relay.js";
import { reserve as callReserve } from "../../src/operations/reserve.js";
import { writeOrders } from "../../src/operations/write-orders.js";
import type { Resources } from "../../src/resources.js";
import type { Model, ModelRequest } from "./order-model.js";
import { epochInDatabase, expireOrders, letPass, type Stores } from "./support.js";

export interface Played {
  readonly stores: Stores;
  readonly sluice: Resources;
  /** Works on the same database, and has lost its Redis: nothing that it does is told. */
  readonly cutOff: Resources;
  readonly saleId: string;
  readonly itemIds: readonly string[];
  readonly priceMinor: number;
  readonly model: Model;
}

/**
 * One of the requests there are, counted around: mostly of those that are at the point where it does something. Where there
 * are none, nothing happens.
 */
const which = fc.record({ at: fc.nat({ max: 20 }), apt: fc.integer({ min: 0, max: 4 }).map(Boolean) });
const told = fc.integer({ min: 0, max: 2 }).map(Boolean);
const ref = fc.nat({ max: 6 });
const item = fc.nat({ max: 1 });
const make = <Name extends string, Rest>(name: Name, rest: { [Key in keyof Rest]: fc.Arbitrary<Rest[Key]> }) =>
  fc.record<Rest>(rest).map((values) => ({ do: name, ...values }));

/** A quantity from the list: one that is above every limit, too. */
const quantity = fc.constantFrom(1, 1, 1, 2, 2, 3, 4);
const reserve = make("reserve", { buyer: fc.constantFrom("anna", "ben", "carl", "dora"), item, quantity });

const COMMANDS = {
  reserve,
  repeat: make("repeat", { which, changed: fc.constantFrom("nothing", "buyer", "item", "quantity") }),
  write: make("write", { told }),
  pay: make("pay", { which, ref, wrong: fc.integer({ min: 0, max: 3 }).map((odds) => odds === 0), told }),
  cancel: make("cancel", { which, by: fc.constantFrom("buyer", "buyer", "stranger", "operator"), told }),
  letPass: make("letPass", { which }),
  expire: make("expire", { told }),
  refund: make("refund", { which, told }),
  completeRefund: make("completeRefund", { which, ref, restock: fc.boolean(), told }),
  refundPayment: make("refundPayment", { payment: ref, ref }),
  adjust: make("adjust", { item, delta: fc.integer({ min: -4, max: 4 }).filter(Boolean), told }),
  setPaused: make("setPaused", { paused: fc.integer({ min: 0, max: 2 }).map((odds) => odds === 0) }),
  load: make("load", { wiped: fc.boolean() }),
  relay: make("relay", {}),
};
type Arbitraries = typeof COMMANDS;
export type Command = {
  [Name in keyof Arbitraries]: Arbitraries[Name] extends fc.Arbitrary<infer One> ? One : never;
}[keyof Arbitraries];

/** How often each comes: so that orders come about, and get through all of their life. */
const WEIGHTS: Record<keyof Arbitraries, number> = {
  ...{ reserve: 6, repeat: 1, write: 6, pay: 9, cancel: 3, letPass: 3, expire: 2, refund: 6, completeRefund: 6 },
  ...{ refundPayment: 1, adjust: 2, setPaused: 1, load: 2, relay: 2 },
};

const command: fc.Arbitrary<Command> = fc.oneof(
  ...Object.entries(COMMANDS).map(([name, arbitrary]) => ({
    arbitrary: arbitrary as fc.Arbitrary<Command>,
    weight: WEIGHTS[name as keyof Arbitraries],
  })),
);

/** A few orders to begin with, and then anything. */
export const anyStory = (shortest: number, longest: number): fc.Arbitrary<Command[]> =>
  fc
    .tuple(
      fc.array(reserve, { minLength: 2, maxLength: 3 }),
      fc.array(command, { minLength: shortest, maxLength: longest, size: "max" }),
    )
    .map(([first, rest]) => [...first, { do: "write", told: true }, ...rest]);

/** Does it to the model and to the stores, and gives what each of them answered. */
export async function play(played: Played, command: Command): Promise<{ expected: string; actual: string }> {
  const { model } = played;
  const both = async (expected: unknown, actual: () => Promise<unknown>) => ({
    expected: String(expected ?? "done"),
    actual: String((await said(actual)) ?? "done"),
  });
  const named = "which" in command ? find(model.requests, command.do, command.which) : undefined;
  if ("which" in command && !named) return { expected: "", actual: "" };
  const request = named as ModelRequest;
  const { stores, saleId, sluice } = played;
  const by = "told" in command && !command.told ? played.cutOff : sluice;
  const orderId = named ? orderIdOf(saleId, named.requestId) : "";
  const refs = { paid: (at: number) => `${saleId}-p${at}`, refunded: (at: number) => `${saleId}-r${at}` };

  switch (command.do) {
    case "reserve":
      return both(...reserving(played, { ...command, requestId: randomUUID(), buyerId: command.buyer }));
    case "repeat":
      return both(...reserving(played, changed(request, command.changed)));
    case "write":
      return both(model.write(command.told), async () => {
        await writeOrders(
          by,
          saleId,
          model.requests.map(({ requestId }) => requestId),
        );
      });
    case "pay": {
      const amountMinor = request.quantity * played.priceMinor + (command.wrong ? 1 : 0);
      const paymentRef = refs.paid(command.ref);
      return both(model.pay(request.requestId, paymentRef, amountMinor, command.told), async () => {
        return (await pay(by, { orderId, paymentRef, amountMinor })).outcome;
      });
    }
    case "cancel": {
      const buyerId = command.by === "stranger" ? "eve" : request.buyerId;
      const how =
        command.by === "operator"
          ? ({ by: "operator", actor: "olga", reason: "a whim" } as const)
          : ({ by: "buyer", buyerId } as const);
      return both(
        model.cancel(request.requestId, command.by === "operator" ? null : buyerId, command.told),
        async () => {
          return (await cancelOrder(by, { orderId, ...how })).status;
        },
      );
    }
    case "letPass":
      return both(model.letPass(request.requestId), () =>
        letPass(stores, { id: saleId, itemId: "" }, [request.requestId]),
      );
    case "expire":
      return both(model.expire(command.told), async () => String(await expireOrders(by)));
    case "refund":
      return both(model.refund(request.requestId, command.told), async () => {
        return (await refundOrder(by, { orderId, reason: "it broke", actor: "olga" })).status;
      });
    case "completeRefund": {
      const { restock } = command;
      const refundRef = refs.refunded(command.ref);
      return both(model.completeRefund(request.requestId, refundRef, restock, command.told), async () => {
        return (await completeRefund(by, { orderId, refundRef, restock, actor: "olga" })).status;
      });
    }
    case "refundPayment": {
      const [paymentRef, refundRef] = [refs.paid(command.payment), refs.refunded(command.ref)];
      return both(model.refundPayment(paymentRef, refundRef), async () => {
        await refundPayment(sluice, { paymentRef, refundRef, actor: "olga" });
      });
    }
    case "adjust": {
      const at = command.item % played.itemIds.length;
      return both(model.adjust(at, command.delta, command.told), async () => {
        const itemId = played.itemIds[at] as string;
        await adjustStock(by, { saleId, itemId, delta: command.delta, reason: "a recount", actor: "olga" });
      });
    }
    case "setPaused":
      return both(model.setPaused(command.paused), async () => {
        const action = command.paused ? "pause" : "resume";
        await changeSaleState(sluice, { saleId, action, reason: "a leak", actor: "olga" });
      });
    case "load":
      return both(model.load(), async () => {
        const mendsEpoch = await epochInDatabase(stores, { id: saleId, itemId: "" });
        if (command.wiped) await stores.redis.flushAll();
        await loadSale(sluice, saleId, { reason: "drift", mendsEpoch });
      });
    case "relay":
      return both(model.relay(), () => relay(sluice));
  }
}

const APT: Partial<Record<Command["do"], ModelRequest["status"]>> = {
  pay: "PENDING_PAYMENT",
  cancel: "PENDING_PAYMENT",
  letPass: "PENDING_PAYMENT",
  refund: "PAID",
  completeRefund: "REFUND_PENDING",
};

function find(requests: readonly ModelRequest[], what: Command["do"], { at, apt }: { at: number; apt: boolean }) {
  const fitting = apt ? requests.filter(({ status }) => status === APT[what]) : [];
  const some = fitting.length > 0 ? fitting : requests;
  return some[at % some.length];
}

type Wish = Pick<ModelRequest, "requestId" | "buyerId" | "item" | "quantity">;

function reserving(played: Played, wish: Wish): [string, () => Promise<string>] {
  const { sluice, saleId, itemIds, model } = played;
  const { requestId, buyerId, quantity } = wish;
  const at = wish.item % itemIds.length;
  const itemId = itemIds[at] as string;
  return [
    model.reserve({ requestId, buyerId, quantity, item: at }),
    async () => (await callReserve(sluice, { saleId, requestId, buyerId, itemId, quantity })).kind,
  ];
}

/** The same request, sent again; or something else under its name. */
function changed(request: Wish, what: "nothing" | "buyer" | "item" | "quantity"): Wish {
  const { requestId, buyerId, item: at, quantity } = request;
  const wish = { requestId, buyerId, item: at, quantity };
  if (what === "buyer") return { ...wish, buyerId: "eve" };
  if (what === "item") return { ...wish, item: at + 1 };
  if (what === "quantity") return { ...wish, quantity: quantity + 1 };
  return wish;
}

/** What was answered: a word, or the code of an error that is meant for the caller. */
async function said(asking: () => Promise<unknown>): Promise<unknown> {
  try {
    return await asking();
  } catch (error) {
    const { name, code } = error as { name?: string; code?: string };
    if (name === "SluiceError" && code) return code;
    throw error;
  }
}
