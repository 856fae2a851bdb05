/** A sale to play with, so that the first thing after `npm start` can be a purchase. */
import { join } from "node:path";
import { z } from "zod";
import { HOUR } from "../domain/time.js";
import { askApi } from "./http-client.js";
import { readJson, writePrivateJson } from "./private-files.js";

/** The demo sale, as the banner shows it. */
export interface DemoSale {
  readonly id: string;
  readonly title: string;
  readonly items: readonly { readonly id: string; readonly title: string; readonly remaining: number }[];
}

const fields = "id title state closesAt items { id title remaining }";
type SaleAnswer = DemoSale & { state: string; closesAt: string };

const items = [
  { sku: "demo-scarce", title: "Scarce: 100 units", priceMinor: 19_900, currency: "EUR", initial: 100 },
  { sku: "demo-plenty", title: "Plenty: 5,000 units", priceMinor: 2_500, currency: "EUR", initial: 5_000 },
];

/** The last demo sale where it is still open, so that a restart goes on with it; else a new one, open for a day. */
export async function findOrMakeDemoSale(
  dataDir: string,
  apiUrl: string,
  operatorToken: string,
  signal: AbortSignal,
): Promise<DemoSale> {
  const ask = <T>(query: string, variables: object) => askApi<T>(apiUrl, operatorToken, query, variables, signal);
  const knownId = findDemoSaleId(dataDir);
  if (knownId) {
    const { sale } = await ask<{ sale: SaleAnswer | null }>(
      `query DemoSale($id: ID!) { sale(id: $id) { ${fields} } }`,
      { id: knownId },
    );
    if (sale?.state === "OPEN" && Date.parse(sale.closesAt) > Date.now() + HOUR) return sale;
  }
  const now = Date.now();
  const input = {
    title: "Demo sale",
    opensAt: new Date(now).toISOString(),
    closesAt: new Date(now + 24 * HOUR).toISOString(),
    maxPerBuyer: 2,
    items,
  };
  const { createSale } = await ask<{ createSale: { id: string } }>(
    "mutation CreateDemoSale($input: CreateSaleInput!) { createSale(input: $input) { id } }",
    { input },
  );
  const { openSale } = await ask<{ openSale: SaleAnswer }>(
    `mutation OpenDemoSale($saleId: ID!) { openSale(saleId: $saleId) { ${fields} } }`,
    { saleId: createSale.id },
  );
  writePrivateJson(pathIn(dataDir), { saleId: openSale.id });
  return openSale;
}

/** The id of the demo sale that was made last, or null. */
function findDemoSaleId(dataDir: string): string | null {
  return z.object({ saleId: z.string() }).safeParse(readJson(pathIn(dataDir))).data?.saleId ?? null;
}

function pathIn(dataDir: string): string {
  return join(dataDir, "demo-sale.json");
}
