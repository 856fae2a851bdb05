import { type Command, Option } from "commander";
import { listAuditEntries } from "../../operations/read-audit.js";
import type { Resources } from "../../resources.js";
import { declare, limitOption, saleOf } from "./arguments.js";
import { counted, type Report, table } from "./report.js";
import type { Run } from "./session.js";

interface Given {
  readonly sale?: string;
  readonly limit: number;
}

export function addAudit(program: Command, run: Run): void {
  declare(program, "audit", "Lists what operators did, the newest first.", "audit --sale $SALE")
    .addOption(new Option("--sale <sale>", "of this sale only"))
    .addOption(limitOption())
    .action((given: Given) => run("database", (sluice) => showAudit(sluice, given)));
}

async function showAudit(sluice: Resources, { sale, limit }: Given): Promise<Report> {
  const saleId = sale === undefined ? null : (await saleOf(sluice, sale)).id;
  const { rows, hasNextPage } = await listAuditEntries(sluice, { saleId, first: limit, after: null });
  const lines = rows.map((row) => [
    row.createdAt,
    row.saleId,
    row.actor,
    row.action,
    row.reason,
    JSON.stringify(row.details),
  ]);
  return {
    text: [
      rows.length > 0
        ? table(["AT", "SALE", "ACTOR", "ACTION", "REASON", "DETAILS"], lines)
        : "The log has no such entries.",
      ...(hasNextPage
        ? [`These are the newest ${counted(rows.length, "entry", "entries")}; there are more: --limit.`]
        : []),
    ].join("\n"),
    json: { entries: rows, more: hasNextPage },
  };
}
