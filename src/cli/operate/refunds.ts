import type { Command } from "commander";
import { listDueRefunds } from "../../operations/read-payments.js";
import { refundPayment } from "../../operations/refund.js";
import type { Resources } from "../../resources.js";
import { actorOf, actorOption, declare, limitOption } from "./arguments.js";
import { counted, type Report, table } from "./report.js";
import type { Run } from "./session.js";

export function addRefunds(program: Command, run: Run): void {
  declare(program, "refunds-due", "Lists the money that is to be given back, due the longest first.", "refunds-due")
    .addOption(limitOption())
    .action(({ limit }: { limit: number }) => run("database", (sluice) => showDueRefunds(sluice, limit)));

  declare(
    program,
    "payment-refunded <paymentRef> <refundRef>",
    "Notes that money which could not buy (REFUND_DUE, AMOUNT_MISMATCH) was given back.",
    "payment-refunded pay_123 re_123",
  )
    .addOption(actorOption())
    .action((paymentRef: string, refundRef: string, given: { actor?: string }) =>
      run("database", async (sluice) => {
        const payment = await refundPayment(sluice, { paymentRef, refundRef, actor: actorOf(given.actor) });
        return { text: "The payment is settled.", json: payment };
      }),
    );
}

async function showDueRefunds(sluice: Resources, limit: number): Promise<Report> {
  const { rows, hasNextPage } = await listDueRefunds(sluice, { first: limit, after: null });
  const lines = rows.map((row) => [
    ...[row.refundDueAt, row.paymentRef, row.amountMinor, row.orderId],
    row.outcome === "PAID" ? "refunded" : `payment-refunded (${row.outcome})`,
  ]);
  return {
    text: [
      rows.length > 0
        ? table(["DUE SINCE", "PAYMENT", "AMOUNT (MINOR UNIT)", "ORDER", "ENDED BY"], lines)
        : "No money is to be given back.",
      ...(hasNextPage ? [`These are the first ${counted(rows.length, "payment")}; there are more: --limit.`] : []),
    ].join("\n"),
    json: { refundsDue: rows, more: hasNextPage },
  };
}
