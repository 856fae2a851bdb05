import { type Command, Option } from "commander";
import { DEAD_LETTER_STATUSES, type DeadLetter, type DeadLetterStatus } from "../../db/dead-letters.js";
import { compensateDeadLetter } from "../../operations/compensate.js";
import { discardDeadLetter } from "../../operations/discard.js";
import { listDeadLetters } from "../../operations/read-dead-letters.js";
import { replayDeadLetter } from "../../operations/replay.js";
import type { Resources } from "../../resources.js";
import { actorOption, declare, limitOption, oneOf, reasonOption, saleOf } from "./arguments.js";
import { type Ending, endAll, endOne, type Given } from "./end-dead-letters.js";
import { counted, type Report, table } from "./report.js";
import type { Run } from "./session.js";

const WHICH = [...DEAD_LETTER_STATUSES, "ALL"] as const;

interface Asked {
  readonly sale?: string;
  readonly status: DeadLetterStatus | "ALL";
  readonly limit: number;
}

export function addDeadLetters(program: Command, run: Run): void {
  declare(program, "dead-letters", "Lists requests that were given up, the newest first.", "dead-letters --sale $SALE")
    .addOption(new Option("--sale <sale>", "of this sale only"))
    .addOption(
      new Option("--status <status>", "open, replayed, compensated, discarded or all ones")
        .default("OPEN")
        .argParser(oneOf(WHICH)),
    )
    .addOption(limitOption())
    .action((asked: Asked) => run("database", (sluice) => showDeadLetters(sluice, asked)));

  const end = (name: string, summary: string, ending: Ending) =>
    declare(program, `${name} <sale> [id]`, summary, `${name} $SALE $LETTER --reason "the disk has room again"`)
      .option("--all", "all open ones of the sale, the oldest first")
      .addOption(reasonOption())
      .addOption(actorOption())
      .action((saleId: string, id: string | undefined, given: Given, command: Command) => {
        if ((id === undefined) === (given.all === undefined))
          command.error("error: name either a dead letter or --all");
        return run("database", (sluice, say) =>
          id === undefined ? endAll(sluice, say, saleId, given, ending) : endOne(sluice, saleId, id, given, ending),
        );
      });
  end("replay", "Has a request that was given up tried again, as if for the first time.", replayDeadLetter);
  end("compensate", "Decides a request that was given up FAILED, and gives its units back.", compensateDeadLetter);

  const summary = "Ends a dead letter whose request was decided meanwhile.";
  declare(program, "discard <sale> <id>", summary, 'discard $SALE $LETTER --reason "it has its order"')
    .addOption(reasonOption())
    .addOption(actorOption())
    .action((saleId: string, id: string, given: Given) =>
      run("database", (sluice) => endOne(sluice, saleId, id, given, discardDeadLetter)),
    );
}

async function showDeadLetters(sluice: Resources, { sale, status, limit }: Asked): Promise<Report> {
  const saleId = sale === undefined ? null : (await saleOf(sluice, sale)).id;
  const query = { saleId, status: status === "ALL" ? null : status, first: limit, after: null };
  const { rows, hasNextPage } = await listDeadLetters(sluice, query);
  return {
    text: [
      rows.length > 0
        ? listOf(rows)
        : `There are no ${status === "ALL" ? "" : `${status.toLowerCase()} `}dead letters.`,
      ...(hasNextPage ? [`These are the newest ${counted(rows.length, "dead letter")}; there are more: --limit.`] : []),
    ].join("\n"),
    json: { deadLetters: rows, more: hasNextPage },
  };
}

function listOf(rows: readonly DeadLetter[]): string {
  return table(
    ["SALE", "ID", "STATUS", "REQUEST", "STAGE", "ATTEMPTS", "SINCE", "ENDED", "LAST ERROR"],
    rows.map((row) => [
      ...[row.saleId, row.id, row.status, row.requestId, row.stage, row.attempts],
      ...[row.createdAt, row.resolvedAt, row.lastError],
    ]),
  );
}
