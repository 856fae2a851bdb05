import type { Command } from "commander";
import { notFound } from "../../domain/errors.js";
import { orderIdOf, parseOrderId } from "../../domain/ids.js";
import type { RequestKey } from "../../domain/model.js";
import { type RequestTrace, traceRequest } from "../../operations/trace-request.js";
import type { Resources } from "../../resources.js";
import { declare } from "./arguments.js";
import { plain, type Report, table } from "./report.js";
import type { Run } from "./session.js";

export function addTrace(program: Command, run: Run): void {
  declare(
    program,
    "trace <sale-or-order> [request]",
    "Tells one request's whole life over all stores, and what is missing. An order's id names its request too.",
    "trace $SALE $REQUEST",
  ).action((saleOrOrder: string, request: string | undefined) =>
    run("either", (sluice) => showTrace(sluice, keyOf(saleOrOrder, request))),
  );
}

/** @throws SluiceError NOT_FOUND where it can be no request's name */
function keyOf(saleOrOrder: string, request: string | undefined): RequestKey {
  const key = parseOrderId(request === undefined ? saleOrOrder : orderIdOf(saleOrOrder, request));
  if (!key) throw notFound("There is no such request.");
  return key;
}

async function showTrace(sluice: Resources, key: RequestKey): Promise<Report> {
  const trace = await traceRequest(sluice, key);
  if (!trace) throw notFound("There is no such request.");
  return { text: describe(trace), json: trace };
}

function describe({ saleId, requestId, buyerId, summary, entries, missing }: RequestTrace): string {
  const lines = entries.map(({ at, source, what, details }) => [at ?? "now", source, what, detailsOf(details)]);
  return [
    `${orderIdOf(saleId, requestId)} of ${buyerId ?? "an unknown buyer"}`,
    plain(summary),
    "",
    table(["AT", "SOURCE", "WHAT", "DETAILS"], lines),
    // The summary says it where there is nothing.
    ...(missing.length > 0 ? ["", "Missing:", ...missing.map((sentence) => `- ${plain(sentence)}`)] : []),
  ].join("\n");
}

/** `name=value`, of what there is. */
function detailsOf(details: Readonly<Record<string, unknown>>): string {
  return Object.entries(details)
    .filter(([, value]) => value !== null && value !== undefined)
    .map(([name, value]) => `${name}=${textOf(value)}`)
    .join(" ");
}

function textOf(value: unknown): string {
  if (value instanceof Date) return value.toISOString();
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
