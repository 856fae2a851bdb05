import { randomUUID } from "node:crypto";
import { beforeAll, describe, expect, it } from "vitest";
import { orderIdOf } from "../../src/domain/ids.js";
import { cancelOrder } from "../../src/operations/cancel.js";
import { pay } from "../../src/operations/pay.js";
import { type RequestPaymentDeps, requestPayment } from "../../src/operations/request-payment.js";
import type { PayableOrder, PaymentProvider } from "../../src/payments/provider.js";
import { createPaymentSimulator } from "../../src/payments/simulator.js";
import type { Resources } from "../../src/resources.js";
import { letPass, openProcess, openSale, order, type Stores, startStores, type TestSale } from "./support.js";

const PRICE = 2_500;

let stores: Stores;
let sluice: Resources;
let sale: TestSale;
beforeAll(async () => {
  stores = await startStores();
  sluice = await openProcess(stores);
  sale = await openSale(sluice);
});

const buyerId = () => `buyer-${randomUUID()}`;
async function orderOf(buyer: string, quantity = 1): Promise<string> {
  return orderIdOf(sale.id, await order(sluice, sale, buyer, { quantity }));
}

/** What it takes, with this provider and this patience. */
function withProvider(payments: PaymentProvider | null, paymentMs = 10_000): RequestPaymentDeps & { log: string[] } {
  const log: string[] = [];
  const { reads } = sluice;
  const rarely = (_level: unknown, _fields: object, message: string) => void log.push(message);
  return { reads, payments, rarely, config: { tuning: { deadlines: { paymentMs } } }, log };
}

const simulated = () => withProvider(createPaymentSimulator());

describe("a payment that is requested", () => {
  it("is begun at the provider, for the order's total and in its currency", async () => {
    const asked: PayableOrder[] = [];
    const deps = withProvider({
      requestPayment: async (payable) => {
        asked.push(payable);
        return { paymentRef: "pay_1", url: "https://pay.example.com/1" };
      },
    });
    const buyer = buyerId();
    const orderId = await orderOf(buyer, 2);
    const request = await requestPayment(deps, {
      orderId: orderId.replace(/[^.]+$/, (id) => id.toUpperCase()),
      buyerId: buyer,
    });
    expect(asked).toEqual([{ orderId, amountMinor: 2 * PRICE, currency: "EUR", payBy: request.payBy }]);
    expect(request).toEqual({ paymentRef: "pay_1", url: "https://pay.example.com/1", payBy: expect.any(Date) });
  });

  it("is the same one at the simulator, however often, and another one of another order", async () => {
    const [one, other] = [buyerId(), buyerId()];
    const orderId = await orderOf(one);
    const first = await requestPayment(simulated(), { orderId, buyerId: one });
    expect(await requestPayment(simulated(), { orderId, buyerId: one })).toEqual(first);
    const second = await requestPayment(simulated(), { orderId: await orderOf(other), buyerId: other });
    expect(second.paymentRef).not.toBe(first.paymentRef);
    const { pathname, searchParams } = new URL(first.url, "http://localhost");
    expect([pathname, Object.fromEntries(searchParams)]).toEqual([
      "/demo/pay",
      { orderId, paymentRef: first.paymentRef, amountMinor: String(PRICE), currency: "EUR" },
    ]);
  });

  it("must be of one's own order", async () => {
    const orderId = await orderOf(buyerId());
    const notFound = { code: "NOT_FOUND" };
    for (const unknown of [
      orderId,
      orderIdOf(sale.id, randomUUID()),
      "nonsense",
      "",
      "a.b",
      "\ud800",
      `${sale.id}.\0`,
    ]) {
      const asking = requestPayment(simulated(), { orderId: unknown, buyerId: "somebody-else" });
      await expect(asking).rejects.toMatchObject(notFound);
    }
  });

  it("must be of one that can be paid", async () => {
    const [payer, canceller, waiter] = [buyerId(), buyerId(), buyerId()];
    const [paid, cancelled, late] = [await orderOf(payer), await orderOf(canceller), await orderOf(waiter)];
    await pay(sluice, { orderId: paid, paymentRef: `pay_${randomUUID()}`, amountMinor: PRICE });
    await cancelOrder(sluice, { orderId: cancelled, by: "buyer", buyerId: canceller });
    await letPass(stores, sale, [late.slice(late.indexOf(".") + 1)]);
    for (const [orderId, buyer, message] of [
      [paid, payer, "An order that is PAID can't be paid."],
      [cancelled, canceller, "An order that is CANCELLED can't be paid."],
      [late, waiter, "The time to pay this order is over."],
    ] as const) {
      const asking = requestPayment(simulated(), { orderId, buyerId: buyer });
      await expect(asking).rejects.toMatchObject({ code: "CONFLICT", message });
    }
  });

  it("has no time to wait for where there is no provider", async () => {
    const asking = requestPayment(withProvider(null), { orderId: "any", buyerId: "anybody" });
    const message = "No payment provider is configured here.";
    await expect(asking).rejects.toMatchObject({ code: "SERVICE_UNAVAILABLE", message, retryAfterMs: undefined });
  });

  it("is given up at its deadline, and the provider is told", async () => {
    const buyer = buyerId();
    const orderId = await orderOf(buyer);
    let told: AbortSignal | undefined;
    const deps = withProvider(
      {
        requestPayment: (_order, signal) => {
          told = signal;
          return new Promise((_begun, rejected) => signal.addEventListener("abort", () => rejected(signal.reason)));
        },
      },
      50,
    );
    await expect(requestPayment(deps, { orderId, buyerId: buyer })).rejects.toMatchObject({
      code: "SERVICE_UNAVAILABLE",
      retryAfterMs: expect.any(Number),
      message: expect.stringMatching(/in time/),
    });
    expect(told?.aborted).toBe(true);
    expect(deps.log).toEqual(["the payment provider did not answer in time"]);
  });

  it.each<[string, PaymentProvider["requestPayment"]]>([
    ["rejects", () => Promise.reject(new Error("401 from https://key:secret@provider"))],
    [
      "throws",
      () => {
        throw new TypeError("a bug in the adapter");
      },
    ],
  ])("hears nothing of what a provider says that %s, but that it may be asked again", async (_name, failing) => {
    const buyer = buyerId();
    const deps = withProvider({ requestPayment: failing });
    const asking = requestPayment(deps, { orderId: await orderOf(buyer), buyerId: buyer });
    await expect(asking).rejects.toMatchObject({
      code: "SERVICE_UNAVAILABLE",
      retryAfterMs: expect.any(Number),
      message: "The payment provider can't be reached right now. Try again.",
    });
    expect(deps.log).toEqual(["the payment provider failed"]);
  });
});
