import { type Command, Option } from "commander";
import { orderIdOf } from "../../domain/ids.js";
import type { Order } from "../../domain/model.js";
import { cancelOrder } from "../../operations/cancel.js";
import { completeRefund, refundOrder } from "../../operations/refund.js";
import type { Resources } from "../../resources.js";
import { actorOf, actorOption, declare, reasonOption } from "./arguments.js";
import type { Report } from "./report.js";
import type { Run } from "./session.js";

interface Given {
  readonly reason: string;
  readonly actor?: string;
}

export function addOrders(program: Command, run: Run): void {
  declare(
    program,
    "cancel <order>",
    "Cancels an unpaid order and gives its units back.",
    'cancel $ORDER --reason "the buyer asked for it"',
  )
    .addOption(reasonOption())
    .addOption(actorOption())
    .action((orderId: string, { reason, actor }: Given) =>
      run("database", async (sluice) =>
        reportOf(sluice, await cancelOrder(sluice, { orderId, reason, by: "operator", actor: actorOf(actor) })),
      ),
    );

  declare(
    program,
    "refund <order>",
    "Sets a paid order's units aside and puts its payment on refunds-due: give the money back, then say refunded.",
    'refund $ORDER --reason "it was damaged"',
  )
    .addOption(reasonOption())
    .addOption(actorOption())
    .action((orderId: string, { reason, actor }: Given) =>
      run("database", async (sluice) =>
        reportOf(sluice, await refundOrder(sluice, { orderId, reason, actor: actorOf(actor) })),
      ),
    );

  declare(
    program,
    "refunded <order> <refundRef>",
    "Notes that an order's money was given back, under the provider's reference.",
    "refunded $ORDER re_123 --restock",
  )
    .addOption(new Option("--restock", "its units are on sale again").conflicts("writeOff"))
    .addOption(new Option("--write-off", "its units are gone"))
    .addOption(actorOption())
    .action((orderId: string, refundRef: string, given: Refunded, command: Command) => {
      if (!given.restock && !given.writeOff) command.error("error: say either --restock or --write-off");
      const restock = given.restock === true;
      return run("database", async (sluice) =>
        reportOf(sluice, await completeRefund(sluice, { orderId, refundRef, restock, actor: actorOf(given.actor) })),
      );
    });
}

interface Refunded {
  readonly restock?: true;
  readonly writeOff?: true;
  readonly actor?: string;
}

function reportOf({ redis }: Resources, order: Order): Report {
  const { saleId, requestId, status } = order;
  const id = orderIdOf(saleId, requestId);
  const later = redis.isUsable() ? "" : " Redis is away and hears of it as soon as it answers.";
  return { text: `The order is ${status}.${later}`, json: { ...order, id } };
}
