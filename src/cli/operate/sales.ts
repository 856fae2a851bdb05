import { type Command, Option } from "commander";
import type { LiveSale } from "../../domain/model.js";
import { SALE_STATES, type SaleState } from "../../domain/sale-state.js";
import { listSales, readSales } from "../../operations/read-sales.js";
import { RedisUnavailableError } from "../../redis/errors.js";
import { readBacklogs, readSalesInRedis } from "../../redis/read-sale.js";
import type { Resources } from "../../resources.js";
import { declare, limitOption, oneOf } from "./arguments.js";
import { counted, type Report, table } from "./report.js";
import type { Run } from "./session.js";

export function addSales(program: Command, run: Run): void {
  declare(program, "sales", "Lists sales with their items, the newest first, drafts too.", "sales --state open")
    .addOption(new Option("--state <state>", "only draft, open, paused or closed ones").argParser(oneOf(SALE_STATES)))
    .addOption(limitOption())
    .action((options: { state?: SaleState; limit: number }) => run("database", (sluice) => showSales(sluice, options)));
}

/** A sale, and what Redis has of it; null where Redis does not answer. */
interface Listed {
  readonly sale: LiveSale;
  readonly inRedis: "loaded" | "loading" | "no" | null;
  /** accepted requests that wait to be decided */
  readonly inLine: number | null;
}

async function showSales(sluice: Resources, options: { state?: SaleState; limit: number }): Promise<Report> {
  const query = { first: options.limit, after: null, state: options.state ?? null, includeDrafts: true };
  const { rows, hasNextPage } = await listSales(sluice, query);
  const listed = await lookUp(
    sluice,
    rows.map(({ id }) => id),
  );
  const header = ["SALE", "STATE", "OPENS", "CLOSES", "IN REDIS", "IN LINE", "ITEM", "SKU", "LEFT", "OF", "TITLE"];
  const lines = listed.flatMap(({ sale, inRedis, inLine }) =>
    sale.items.map((item) => [
      ...[sale.id, sale.state, sale.opensAt, sale.closesAt, inRedis ?? "?", inLine],
      ...[item.id, item.sku, sale.remaining.get(item.id) ?? null, item.initial, sale.title],
    ]),
  );
  return {
    text: [
      listed.length > 0 ? table(header, lines) : "There are no such sales.",
      ...(hasNextPage ? [`These are the newest ${counted(listed.length, "sale")}; there are more: --limit.`] : []),
      ...(listed.some(({ inRedis }) => inRedis === null)
        ? ["Redis does not answer: what is left is the database's count."]
        : []),
    ].join("\n"),
    json: { sales: listed.map(documentOf), more: hasNextPage },
  };
}

async function lookUp(sluice: Resources, saleIds: readonly string[]): Promise<Listed[]> {
  const sales = (await readSales(sluice, saleIds)).filter((sale) => sale !== null);
  const ids = sales.map(({ id }) => id);
  const unlessAway = (error: unknown) => {
    if (error instanceof RedisUnavailableError) return null;
    throw error;
  };
  const [inRedis, backlogs] = await Promise.all([
    readSalesInRedis(sluice.redis, ids).catch(unlessAway),
    readBacklogs(sluice.redis, ids).catch(unlessAway),
  ]);
  return sales.map((sale, at) => {
    const known = inRedis?.[at];
    const phase = known?.loaded ? "loaded" : known?.loading ? "loading" : "no";
    return { sale, inRedis: known ? phase : null, inLine: backlogs?.get(sale.id)?.pending ?? null };
  });
}

function documentOf({ sale, inRedis, inLine }: Listed): object {
  const { remaining, items, version: _, ...rest } = sale;
  return {
    ...rest,
    inRedis,
    inLine,
    items: items.map(({ saleId: _, ...item }) => ({ ...item, remaining: remaining.get(item.id) ?? null })),
  };
}
