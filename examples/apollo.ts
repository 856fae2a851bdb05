// Buys one unit with Apollo Client: SLUICE_TOKEN=<a buyer's> npx tsx examples/apollo.ts [saleId]
import { ApolloClient, ApolloLink, CombinedGraphQLErrors, HttpLink, InMemoryCache } from "@apollo/client";
import { GraphQLWsLink } from "@apollo/client/link/subscriptions";
import { graphql, type ResultOf } from "gql.tada";
import { createClient } from "graphql-ws";

Object.assign(globalThis, { WebSocket: (await import("ws")).WebSocket }); // for Node 20: all others have their own
const SALES = graphql(
  `{ serverTime sales(first: 100, state: OPEN) { edges { node { id opensAt items { id remaining } } } } }`,
);
const UPDATES = graphql(`subscription ($saleId: ID!, $requestId: UUID!) {
  reservationUpdates(saleId: $saleId, requestId: $requestId) { status version reason order { id } } }`);
const RESERVE = graphql(`mutation ($input: ReserveInput!) { reserve(input: $input) {
  message retryAfterMs reservation { requestId status version reason order { id } } } }`);

const url = new URL("/graphql", process.env.SLUICE_URL ?? "http://127.0.0.1:4000").href;
const headers = { authorization: `Bearer ${process.env.SLUICE_TOKEN}` };
const socket = createClient({ url: url.replace("http", "ws"), connectionParams: headers, shouldRetry: () => true });
const fetchInTime: typeof fetch = (to, init) => fetch(to, { ...init, signal: AbortSignal.timeout(10_000) });
const http = new HttpLink({ uri: url, headers, fetch: fetchInTime });
const link = ApolloLink.split((it) => it.operationType === "subscription", new GraphQLWsLink(socket), http);
const client = new ApolloClient({ link, cache: new InMemoryCache() });

const found = await client.query({ query: SALES, errorPolicy: "all" });
const inStock = ({ remaining }: { remaining: number }) => remaining > 0;
const begun = found.data?.sales.edges.filter(({ node }) => node.opensAt <= (found.data?.serverTime ?? "")); // newest first
const sale = begun?.find(({ node: { id, items } }) =>
  process.argv[2] ? id === process.argv[2] : items.some(inStock),
)?.node;
const item = sale?.items.find(inStock) ?? sale?.items[0];
if (!sale || !item) throw found.error ?? new Error("There is no such sale that has begun.");

let shown = 0;
function show({ status, version, reason, order }: ResultOf<typeof UPDATES>["reservationUpdates"]) {
  if (version > shown) console.log(status, order?.id ?? reason ?? ""); // lower ones were overtaken on their way
  shown = Math.max(shown, version);
  if (status !== "PENDING" && status !== "QUEUED") process.exit(status === "SUCCESS" ? 0 : 1);
}

const request = { saleId: sale.id, requestId: crypto.randomUUID() }; // once: all that is sent below is this request
client.subscribe({ query: UPDATES, variables: request }).subscribe(({ data }) => data && show(data.reservationUpdates));
const input = { ...request, itemId: item.id };
for (;;) {
  const { data, error } = await client.mutate({ mutation: RESERVE, variables: { input }, errorPolicy: "all" });
  const lost = { retryAfterMs: 1_000 + 2_000 * Math.random() }; // no answer is no refusal
  const refusal = CombinedGraphQLErrors.is(error) ? error.errors[0]?.extensions : undefined;
  const retryAfterMs = Number((data?.reserve ?? refusal ?? lost).retryAfterMs);
  console.log(data?.reserve.message ?? error?.message);
  if (data?.reserve.reservation?.requestId === request.requestId) show(data.reserve.reservation);
  else if (!retryAfterMs) process.exit(1);
  await new Promise((wake) => setTimeout(wake, retryAfterMs || 30_000)); // the subscription might have died unnoticed
}
