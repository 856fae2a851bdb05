// Buys one unit with fetch and graphql-ws alone: SLUICE_TOKEN=<a buyer's> npx tsx examples/plain.ts [saleId]
import type { graphql as Graphql, ResultOf, TadaDocumentNode, VariablesOf } from "gql.tada"; // types only
import { createClient, type FormattedExecutionResult as Result } from "graphql-ws";

Object.assign(globalThis, { WebSocket: (await import("ws")).WebSocket }); // for Node 20: all others have their own
const graphql = String as unknown as typeof Graphql; // a text at runtime, checked by the compiler
const SALES = graphql(
  `{ serverTime sales(first: 100, state: OPEN) { edges { node { id opensAt items { id remaining } } } } }`,
);
const UPDATES = graphql(`subscription ($saleId: ID!, $requestId: UUID!) {
  reservationUpdates(saleId: $saleId, requestId: $requestId) { status version reason order { id } } }`);
const RESERVE = graphql(`mutation ($input: ReserveInput!) { reserve(input: $input) {
  message retryAfterMs reservation { requestId status version reason order { id } } } }`);

const url = new URL("/graphql", process.env.SLUICE_URL ?? "http://127.0.0.1:4000").href;
const auth = { authorization: `Bearer ${process.env.SLUICE_TOKEN}` };
const post = { method: "POST", headers: { ...auth, "content-type": "application/json" } };
async function send<Data, Variables>(query: TadaDocumentNode<Data, Variables>, variables: Variables) {
  const sent = fetch(url, { ...post, body: JSON.stringify({ query, variables }), signal: AbortSignal.timeout(10_000) });
  return sent.then((response) => response.json()).catch(() => ({})) as Promise<Result<Data>>; // empty: no answer
}

const found = await send(SALES, {});
const inStock = ({ remaining }: { remaining: number }) => remaining > 0;
const begun = found.data?.sales.edges.filter(({ node }) => node.opensAt <= (found.data?.serverTime ?? "")); // newest first
const sale = begun?.find(({ node: { id, items } }) =>
  process.argv[2] ? id === process.argv[2] : items.some(inStock),
)?.node;
const item = sale?.items.find(inStock) ?? sale?.items[0];
if (!sale || !item)
  throw new Error(found.errors?.[0]?.message ?? "There is no answer, or no such sale that has begun.");

type Updates = ResultOf<typeof UPDATES>;
let shown = 0;
function show({ status, version, reason, order }: Updates["reservationUpdates"]) {
  if (version > shown) console.log(status, order?.id ?? reason ?? ""); // lower ones were overtaken on their way
  shown = Math.max(shown, version);
  if (status !== "PENDING" && status !== "QUEUED") process.exit(status === "SUCCESS" ? 0 : 1);
}

const request = { saleId: sale.id, requestId: crypto.randomUUID() }; // once: all that is sent below is this request
const socket = createClient({ url: url.replace("http", "ws"), connectionParams: auth, shouldRetry: () => true });
const sink = { next: ({ data }: Result<Updates>) => data && show(data.reservationUpdates), error() {}, complete() {} };
socket.subscribe<Updates>({ query: String(UPDATES), variables: request satisfies VariablesOf<typeof UPDATES> }, sink);
for (;;) {
  const { data, errors: [error] = [] } = await send(RESERVE, { input: { ...request, itemId: item.id } });
  const lost = { retryAfterMs: 1_000 + 2_000 * Math.random() }; // no answer is no refusal
  const retryAfterMs = Number((data?.reserve ?? error?.extensions ?? lost).retryAfterMs);
  console.log(data?.reserve.message ?? error?.message ?? "There was no answer.");
  if (data?.reserve.reservation?.requestId === request.requestId) show(data.reserve.reservation);
  else if (!retryAfterMs) process.exit(1);
  await new Promise((wake) => setTimeout(wake, retryAfterMs || 30_000)); // the subscription might have died unnoticed
}
