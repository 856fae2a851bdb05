/** The explorer: GraphiQL for a browser that opens /graphql, in demo mode as a tour through a sale. */
import { createHmac, randomUUID } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { decodeJwt } from "jose";
import type { Config } from "../config.js";
import type { SaleState } from "../domain/sale-state.js";
import { SECOND } from "../domain/time.js";
import type { RequestLog } from "../observability/logger.js";
import { listSales, type ReadSalesDeps, readSales } from "../operations/read-sales.js";
import { signDemoToken } from "./demo.js";
import type { PreparedTabs } from "./explorer-storage.js";
import { PLAIN_TABS, type Tour, tourTabs } from "./explorer-tabs.js";
import { sendGraphiql } from "./graphiql.js";
import type { Route } from "./routes.js";
import { isFromThisMachine } from "./this-machine.js";

export interface ExplorerResources extends ReadSalesDeps {
  readonly config: Config;
}

/** Whether a browser opens the address, as opposed to a client that sends a query. */
export function wantsExplorer({ method, headers }: IncomingMessage): boolean {
  return method === "GET" && (headers.accept ?? "").includes("text/html");
}

/** The page. An operator's token is in it only for a browser on this machine, and only in demo mode. */
export function explorerRoute(resources: ExplorerResources): Route {
  return async (req, res, { log }) => {
    const prepared = resources.config.SLUICE_DEMO
      ? await prepareTour(resources, isFromThisMachine(req), log)
      : plainTabs();
    await sendGraphiql(res, prepared);
  };
}

function plainTabs(): PreparedTabs {
  const edition = `plain ${PLAIN_TABS.map(({ query }) => query).join()}`;
  return {
    tabs: PLAIN_TABS,
    edition,
    saleId: null,
    keepFor: [null],
    now: Date.now(),
    expiresAt: null,
    keepHeaders: false,
  };
}

/** A tour with a buyer of its own, who has bought nothing yet. */
async function prepareTour(deps: ExplorerResources, withOperator: boolean, log: RequestLog): Promise<PreparedTabs> {
  const { config } = deps;
  const { sale, keepFor } = await findSale(deps).catch((error: unknown) => {
    log.warn({ err: error }, "the explorer opens without a sale");
    return UNKNOWN;
  });
  const buyerToken = await signDemoToken(config, "buyer", `explorer-${randomUUID()}`);
  const operatorToken = withOperator ? await signDemoToken(config, "operator", "explorer") : null;
  return {
    tabs: tourTabs({ sale, requestId: randomUUID(), buyerToken, operatorToken }),
    edition: editionOf(config, withOperator),
    saleId: sale?.saleId ?? null,
    keepFor,
    now: Date.now(),
    expiresAt: (decodeJwt(buyerToken).exp ?? 0) * SECOND,
    keepHeaders: true,
  };
}

interface Found {
  readonly sale: Tour["sale"];
  readonly keepFor: PreparedTabs["keepFor"];
}

const UNKNOWN: Found = { sale: null, keepFor: "any" };

/**
 * The newest sale that is open and has stock, and its first item that has. Earlier tabs stay good for that sale, for one
 * that the visitor has just paused, and as long as there is nothing better for one that he has just bought out.
 */
async function findSale(deps: ExplorerResources): Promise<Found> {
  const [open, paused] = await Promise.all([running(deps, "OPEN"), running(deps, "PAUSED")]);
  for (const sale of await readSales(deps, open)) {
    const item = sale?.items.find(({ id }) => (sale.remaining.get(id) ?? 0) > 0);
    if (sale && item) return { sale: { saleId: sale.id, itemId: item.id }, keepFor: [sale.id, ...paused] };
  }
  return { sale: null, keepFor: [null, ...open, ...paused] };
}

/** The ids of the newest sales in a state, whose window is open. */
async function running(deps: ExplorerResources, state: SaleState): Promise<readonly string[]> {
  const now = Date.now();
  const { rows } = await listSales(deps, { first: 20, after: null, state, includeDrafts: false });
  return rows
    .filter(({ opensAt, closesAt }) => opensAt.getTime() <= now && now < closesAt.getTime())
    .map(({ id }) => id);
}

/** Another one for other texts and for another key, whose tokens are good for nothing. Tells nothing of the key. */
function editionOf({ JWT_SECRET: secret = "" }: Config, withOperator: boolean): string {
  const tour = { requestId: "", buyerToken: "", operatorToken: withOperator ? "" : null };
  const tabs = [...tourTabs({ ...tour, sale: { saleId: "", itemId: "" } }), ...tourTabs({ ...tour, sale: null })];
  const texts = JSON.stringify(tabs.map(({ query }) => query));
  return createHmac("sha256", secret).update(`explorer ${texts}`).digest("base64url");
}
