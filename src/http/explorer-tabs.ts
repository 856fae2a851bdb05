/** The tabs that the explorer opens with: a short tour in demo mode, two hints otherwise. */
import { orderIdOf } from "../domain/ids.js";
import { DAY } from "../domain/time.js";

/** A tab as GraphiQL has it; variables and headers are JSON texts. */
export interface ExplorerTab {
  readonly query: string;
  readonly variables: string | null;
  readonly headers: string | null;
}

/** What the tabs of the tour are about. */
export interface Tour {
  /** null where nothing is on sale */
  readonly sale: { readonly saleId: string; readonly itemId: string } | null;
  /** of the one request that the tabs are about */
  readonly requestId: string;
  readonly buyerToken: string;
  /** null for visitors who may not have one */
  readonly operatorToken: string | null;
}

// Lines of at most 50 characters: GraphiQL doesn't wrap them.
const TOKEN_HINT = `# It needs an operator's token under Headers:
#   npm run --silent token -- operator me
`;

/** The tour through a sale, or how to make one where there is none. */
export function tourTabs({ sale, requestId, buyerToken, operatorToken }: Tour): readonly ExplorerTab[] {
  const buyer = authorization(buyerToken);
  const operator = authorization(operatorToken ?? "<an operator's token>");
  const hint = operatorToken === null ? TOKEN_HINT : "";
  if (!sale) return [tab(hint + NEW_SALE, { input: newSale(), saleId: "" }, operator), tab(OPEN_SALES, null, null)];

  const { saleId, itemId } = sale;
  const input = { saleId, itemId, quantity: 1, requestId };
  return [
    tab(RESERVE, { input }, buyer),
    tab(SAME_AGAIN, { input }, buyer),
    tab(WATCH, { saleId, requestId }, buyer),
    tab(PAY, { orderId: orderIdOf(saleId, requestId) }, buyer),
    tab(hint + OPERATE, { saleId, reason: "shown to buyers" }, operator),
    tab(SALE_LIVE, { saleId }, null),
  ];
}

const RESERVE = `# Buys one unit. QUEUED: stock is held, durably.
# Run it (Ctrl-Enter), then open the next tab.
mutation Reserve($input: ReserveInput!) {
  reserve(input: $input) {
    status
    message
    reservation { requestId status ahead }
  }
}
`;

const SAME_AGAIN = `# The same again, as after a lost answer: DECIDED,
# and no second unit. Run it, then the next tab.
mutation SameAgain($input: ReserveInput!) {
  reserve(input: $input) {
    status
    message
    reservation {
      requestId
      status
      order { id status }
    }
  }
}
`;

const WATCH = `# What became of it, and what still becomes of it,
# till it is paid: while this tab is in front.
subscription Watch(
  $saleId: ID!
  $requestId: UUID!
) {
  reservationUpdates(
    saleId: $saleId
    requestId: $requestId
  ) {
    status
    version
    reason
    order { id status payBy }
  }
}
`;

const PAY = `# Pay it, or give it back: Run asks which of them.
# Open Pay's url on this server (put it behind the
# host), then run Watch again: it says PAID.
mutation Pay($orderId: ID!) {
  requestPayment(orderId: $orderId) {
    paymentRef
    url
    payBy
  }
}

mutation GiveBack($orderId: ID!) {
  cancelOrder(orderId: $orderId) { id status }
}
`;

const OPERATE = `# What operators do: Run asks which of the four.
# Pause, look (Operate), resume; then next tab.
query Operate($saleId: ID!) {
  sale(id: $saleId) {
    title
    state
    pauseReason
    items { title initial remaining }
  }
}

mutation Pause($saleId: ID!, $reason: String!) {
  pauseSale(saleId: $saleId, reason: $reason) {
    state
    pauseReason
  }
}

mutation Resume($saleId: ID!) {
  resumeSale(saleId: $saleId) { state }
}

query Orders($saleId: ID!) {
  orders(saleId: $saleId) {
    edges {
      node { id buyerId status payBy paymentRef }
    }
  }
  refundsDue {
    edges {
      node { paymentRef amountMinor outcome }
    }
  }
}
`;

const SALE_LIVE = `# The sale as it changes. Run it, and pause and
# resume in a second window with this page.
subscription SaleLive($saleId: ID!) {
  saleUpdates(saleId: $saleId) {
    state
    pauseReason
    version
    items { title remaining soldOut }
  }
}
`;

const NEW_SALE = `# Nothing is on sale. Run NewSale, put its id into
# the variables as saleId, run OpenSale, reload.
mutation NewSale($input: CreateSaleInput!) {
  createSale(input: $input) { id state }
}

mutation OpenSale($saleId: ID!) {
  openSale(saleId: $saleId) {
    id
    state
    items { id title remaining }
  }
}
`;

const OPEN_SALES = `# The sales that are open now. Run it.
query OpenSales {
  sales(state: OPEN) {
    edges {
      node {
        id
        title
        closesAt
        items { id title remaining }
      }
    }
  }
}
`;

const WITH_TOKEN = `# What is a buyer's own needs a token in Headers:
#   { "authorization": "Bearer …" }
# It comes from your identity provider; where the
# API has a JWT_SECRET, from this command as well:
#   npm run --silent token -- buyer alice
query WithToken {
  myOrders(first: 10) {
    edges {
      node {
        id
        status
        payBy
        item { title }
      }
    }
  }
}
`;

/** What the explorer opens with outside of the demo. */
export const PLAIN_TABS: readonly ExplorerTab[] = [tab(OPEN_SALES, null, null), tab(WITH_TOKEN, null, null)];

function newSale(): object {
  const now = Date.now();
  return {
    title: "My sale",
    opensAt: new Date(now).toISOString(),
    closesAt: new Date(now + 1 * DAY).toISOString(),
    maxPerBuyer: 2,
    items: [{ sku: "poster", title: "Poster", priceMinor: 2_500, currency: "EUR", initial: 100 }],
  };
}

function tab(query: string, variables: object | null, headers: object | null): ExplorerTab {
  return { query, variables: variables && asText(variables), headers: headers && asText(headers) };
}

function authorization(token: string): object {
  return { authorization: `Bearer ${token}` };
}

function asText(value: object): string {
  return JSON.stringify(value, null, 2);
}
