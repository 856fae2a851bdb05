import { Command, type OutputConfiguration } from "commander";
import { addAdjust } from "./adjust.js";
import { addAudit } from "./audit.js";
import { addDeadLetters } from "./dead-letters.js";
import { addOrders } from "./orders.js";
import { addReconcile } from "./reconcile.js";
import { addRefunds } from "./refunds.js";
import { addSaleStates } from "./sale-states.js";
import { addSales } from "./sales.js";
import type { Run } from "./session.js";
import { addTrace } from "./trace.js";

/** All commands. Nothing ends the process: what is wrong is thrown, also wrong usage and help. */
export function createProgram(run: Run, output: OutputConfiguration = {}): Command {
  const program = new Command("sluice")
    .description("What operators do, straight on the stores of the running configuration: also while the API is down.")
    .option("--json", "one JSON document on standard output, and errors as JSON on standard error")
    .addHelpText("after", "\nExit status: 0 fine, 1 drift or failure, 2 wrong usage.")
    .configureHelp({ showGlobalOptions: true })
    .helpCommand(false)
    .showHelpAfterError("See: npm run --silent sluice -- --help")
    .configureOutput(output)
    .exitOverride();
  for (const add of [
    addSales,
    addSaleStates,
    addReconcile,
    addTrace,
    addDeadLetters,
    addOrders,
    addRefunds,
    addAdjust,
    addAudit,
  ]) {
    add(program, run);
  }
  return program;
}
