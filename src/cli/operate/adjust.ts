import type { Command } from "commander";
import { adjustStock } from "../../operations/adjust-stock.js";
import type { Resources } from "../../resources.js";
import { actorOf, actorOption, declare, reasonOption, wholeNumber } from "./arguments.js";
import { counted, type Report } from "./report.js";
import type { Run } from "./session.js";

const UNITS_AT_MOST = 2_147_483_647;

interface Given {
  readonly reason: string;
  readonly actor?: string;
}

export function addAdjust(program: Command, run: Run): void {
  declare(
    program,
    "adjust <sale> <item>",
    "Puts units of an item on sale, or takes some off it: never promised ones. A repeat adjusts again.",
    'adjust $SALE $ITEM -5 --reason "five were damaged"',
  )
    .argument("<delta>", "units, negative to take some off", wholeNumber(-UNITS_AT_MOST, UNITS_AT_MOST))
    .addOption(reasonOption())
    .addOption(actorOption())
    .action((saleId: string, itemId: string, delta: number, given: Given) =>
      run("both", (sluice) => adjust(sluice, saleId, itemId, delta, given)),
    );
}

async function adjust(sluice: Resources, saleId: string, itemId: string, delta: number, given: Given): Promise<Report> {
  const { reason } = given;
  const sale = await adjustStock(sluice, { saleId, itemId, delta, reason, actor: actorOf(given.actor) });
  const initial = sale.items.find(({ id }) => id === itemId)?.initial ?? 0;
  const what = `${counted(Math.abs(delta), "unit")} ${delta > 0 ? "put on" : "taken off"} sale`;
  return {
    text: `${what}: the item has ${counted(initial, "unit")} in all now.`,
    json: { saleId, itemId, delta, initial },
  };
}
