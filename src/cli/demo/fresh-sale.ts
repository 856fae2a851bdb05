import { HOUR } from "../../domain/time.js";
import { askApi } from "../../embedded/http-client.js";
import type { DemoOptions } from "./arguments.js";
import { DemoFailure } from "./failure.js";
import type { RunningSluice } from "./running-sluice.js";

/** What the crowd storms. */
export interface Target {
  readonly saleId: string;
  readonly itemId: string;
  readonly units: number;
  /** how long an unpaid order keeps its units */
  readonly windowSeconds: number;
}

/** Closes it when all is proven: what is left of it would be what a visitor of the shop is shown first. Its failing is no harm. */
export async function closeFreshSale(sluice: RunningSluice, run: string, saleId: string): Promise<void> {
  const operator = await sluice.token("operator", `demo-${run}`);
  const close = "mutation ($saleId: ID!) { closeSale(saleId: $saleId) { state } }";
  await askApi(sluice.apiUrl, operator, close, { saleId }, new AbortController().signal).catch(() => {});
}

/**
 * Makes and opens a sale of the crowd's own, with one scarce item, for an hour. Not the demo sale that `npm start` made: what
 * others buy in it meanwhile would be in the verdict, which could then neither hold nor be broken.
 *
 * @throws DemoFailure with what the API said
 */
export async function openFreshSale(sluice: RunningSluice, run: string, options: DemoOptions): Promise<Target> {
  const { units, windowSeconds } = options;
  const operator = await sluice.token("operator", `demo-${run}`);
  const ask = <T>(query: string, variables: object) =>
    askApi<T>(sluice.apiUrl, operator, query, variables, new AbortController().signal).catch((error: Error) => {
      throw new DemoFailure(`No sale could be made ready, the API says: ${error.message}`);
    });
  const now = Date.now();
  const input = {
    title: `Demo, crowd ${run}`,
    opensAt: new Date(now).toISOString(),
    closesAt: new Date(now + HOUR).toISOString(),
    maxPerBuyer: 2,
    paymentWindowSeconds: windowSeconds,
    items: [
      { sku: "demo-scarce", title: `Scarce: ${units} units`, priceMinor: 19_900, currency: "EUR", initial: units },
    ],
  };
  const { createSale } = await ask<{ createSale: { id: string } }>(
    "mutation ($input: CreateSaleInput!) { createSale(input: $input) { id } }",
    { input },
  );
  const { openSale } = await ask<{ openSale: { id: string; items: { id: string }[] } }>(
    "mutation ($saleId: ID!) { openSale(saleId: $saleId) { id items { id } } }",
    { saleId: createSale.id },
  );
  return { saleId: openSale.id, itemId: openSale.items[0]?.id ?? "", units, windowSeconds };
}
