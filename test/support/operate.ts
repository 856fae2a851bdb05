import type { Api, TestSale, TestSluice } from "./sluice.js";

export type SaleMutation = "openSale" | "pauseSale" | "resumeSale" | "closeSale";

/** Changes a sale's state as an operator does. Throws where that is refused. */
export async function operate(sluice: TestSluice, api: Api, mutation: SaleMutation, sale: TestSale): Promise<void> {
  const operator = await sluice.token("operator", "olga");
  const reason = mutation === "pauseSale" ? ', reason: "a test"' : "";
  const query = `mutation ($id: ID!) { ${mutation}(saleId: $id${reason}) { state } }`;
  const { errors } = await api.call(operator, query, { id: sale.id });
  if (errors) throw new Error(`${mutation} failed: ${JSON.stringify(errors)}`);
}
