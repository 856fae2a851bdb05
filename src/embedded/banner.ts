/** What `npm start` prints when all is up: where things are, and what to paste first. */
import { resolve } from "node:path";
import type { Role } from "../admission/identity.js";
import type { DemoSale } from "./demo-sale.js";

/** What there is to tell. */
export interface BannerInput {
  readonly apiUrl: string;
  readonly workerMetricsUrl: string;
  readonly dataDir: string;
  /** whether there is a storefront page */
  readonly page: boolean;
  /** whether payments can be reported by a signed webhook */
  readonly webhook: boolean;
  /** null where none was made */
  readonly sale: DemoSale | null;
  /** null in production, and where tokens come from an identity provider */
  readonly tokens: Record<Role, { readonly userId: string; readonly token: string }> | null;
}

/** The first line is `ready`, alone, for scripts that wait for it. */
export function banner({ apiUrl, workerMetricsUrl, dataDir, sale, tokens, page, webhook }: BannerInput): string {
  const rows: [string, string][] = [
    ...(page ? [["storefront", `${apiUrl}/  (in a browser)`] satisfies [string, string]] : []),
    ["explorer", `${apiUrl}/graphql  (GraphiQL, in a browser)`],
    ["GraphQL", `${apiUrl}/graphql`],
    ["WebSocket", `${apiUrl.replace(/^http/, "ws")}/graphql  (graphql-transport-ws)`],
    ...(webhook
      ? [["payments", `${apiUrl}/webhooks/payments  (signed: docs/payments.md)`] satisfies [string, string]]
      : []),
    ["health", `${apiUrl}/health`],
    ["ready", `${apiUrl}/ready`],
    ["queues", `${apiUrl}/admin/queues  (in a browser: any name, the operator's token as the password)`],
    ["metrics", `${apiUrl}/metrics  (with the operator's token)`],
    ["", `${workerMetricsUrl}  (the worker's)`],
    ["logs", `${dataDir}/logs`],
  ];
  const saleRows: [string, string][] = sale
    ? [
        ["sale", `${sale.id}  (${sale.title})`],
        ...sale.items.map((item): [string, string] => ["item", `${item.id}  (${item.title}, ${item.remaining} left)`]),
      ]
    : [];
  const tokenRows = Object.entries(tokens ?? {}).map(([role, { userId, token }]): [string, string] => [
    `${role} ${userId}`,
    token,
  ]);
  const parts = ["ready", table(rows)];
  if (saleRows.length > 0) parts.push(table(saleRows));
  if (tokenRows.length > 0) parts.push(`Tokens, good for a day (more: ${tokenCommand(dataDir)})\n${table(tokenRows)}`);
  if (sale && tokens) parts.push(commands(apiUrl, sale, tokens.buyer.token));
  parts.push("Ctrl-C stops everything.");
  return `${parts.join("\n\n")}\n`;
}

/** As it must be typed in the checkout's folder, also where the data lies elsewhere. */
function tokenCommand(dataDir: string): string {
  const elsewhere = dataDir === resolve(".data") ? "" : `SLUICE_DATA_DIR=${dataDir} `;
  return `${elsewhere}npm run --silent token -- buyer <userId>`;
}

function table(rows: readonly [string, string][]): string {
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, value]) => `  ${name.padEnd(width)}  ${value}`).join("\n");
}

function commands(apiUrl: string, sale: DemoSale, token: string): string {
  const item = sale.items[0];
  const reserve =
    "mutation($input: ReserveInput!) { reserve(input: $input) { status message reservation { requestId status ahead } } }";
  const watch = "subscription($saleId: ID!) { saleUpdates(saleId: $saleId) { version items { title remaining } } }";
  // The shell puts a fresh id in, so that pasting twice is two intentions to buy and not a repeat of one.
  const body = JSON.stringify({
    query: reserve,
    variables: { input: { saleId: sale.id, itemId: item?.id, requestId: "@" } },
  });
  const freshBody = body.replace('"@"', `"'"$(node -p 'crypto.randomUUID()')"'"`);
  const curl = (flags: string, headers: string[], data: string) =>
    [`curl ${flags} ${apiUrl}/graphql`, ...headers.map((header) => `-H '${header}'`), `-d '${data}'`].join(" \\\n    ");
  return [
    "Reserve one unit:",
    `  ${curl("-s", ["content-type: application/json", `authorization: Bearer ${token}`], freshBody)}`,
    "",
    "Watch the stock (server-sent events):",
    `  ${curl("-sN", ["content-type: application/json", "accept: text/event-stream"], JSON.stringify({ query: watch, variables: { saleId: sale.id } }))}`,
  ].join("\n");
}
