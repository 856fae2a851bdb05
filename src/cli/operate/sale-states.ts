import { type Command, Option } from "commander";
import type { SaleAction } from "../../domain/sale-state.js";
import { changeSaleState } from "../../operations/change-sale-state.js";
import type { Resources } from "../../resources.js";
import { actorOf, actorOption, declare, reasonOption } from "./arguments.js";
import type { Report } from "./report.js";
import type { Run } from "./session.js";

interface Given {
  readonly actor?: string;
  readonly reason?: string;
}

export function addSaleStates(program: Command, run: Run): void {
  const add = (action: SaleAction, summary: string, example: string, reason: Option) =>
    declare(program, `${action} <sale>`, summary, example)
      .addOption(reason)
      .addOption(actorOption())
      .action((saleId: string, given: Given) => run("database", (sluice) => change(sluice, saleId, action, given)));
  const ifAny = new Option("--reason <text>", "why, for the audit log, if there is something to say");

  add("open", "Opens a draft: loads it into Redis, and lets buyers in from its opening time on.", "open $SALE", ifAny);
  add(
    "pause",
    "Stops the buying; what is accepted is worked off.",
    'pause $SALE --reason "a wrong price"',
    reasonOption(),
  );
  add("resume", "Lets buyers into a paused sale again.", "resume $SALE", ifAny);
  add("close", "Ends a sale for good; what is accepted is worked off.", "close $SALE", ifAny);
}

async function change(sluice: Resources, saleId: string, action: SaleAction, given: Given): Promise<Report> {
  const actor = actorOf(given.actor);
  const sale = await changeSaleState(sluice, { saleId, action, actor, ...(given.reason && { reason: given.reason }) });
  return {
    text: `The sale is ${sale.state}, in the database and in Redis.`,
    json: { saleId, state: sale.state, stateVersion: sale.stateVersion },
  };
}
