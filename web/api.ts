/** One question to the API over HTTP, and its answer: always a value, also where none came. */
import type { Buyer, Buyers } from "./buyer.js";
import type { Document } from "./documents.js";
import type { Answer } from "./purchase.js";

/** Longer than the API takes in any case: it gives up after 2 s. */
const TIMEOUT_MS = 8_000;

export type Ask = <Data, Variables extends object>(
  document: Document<Data, Variables>,
  variables: Variables,
) => Promise<Answer<Data>>;

interface GraphQLAnswer<Data> {
  readonly data?: Data | null;
  readonly errors?: readonly {
    readonly message: string;
    readonly extensions?: { readonly code?: string; readonly retryAfterMs?: number };
  }[];
}

/**
 * Asks as the present buyer; a refused token is renewed, and the question asked once more.
 *
 * @param onlyAs the buyer whose questions these are: they are never asked as somebody else
 */
export function createAsk(buyers: Buyers, onlyAs: string | null = null): Ask {
  return async (document, variables) => {
    const ask = (buyer: Buyer | null): Promise<Answer<DataOf<typeof document>>> | Answer<never> => {
      if (!buyer) return unreachable("The shop can't be reached.");
      if (onlyAs !== null && buyer.buyerId !== onlyAs) return failure("UNAUTHENTICATED", "You are somebody else now.");
      return post(document, variables, buyer.token);
    };
    const buyer = await buyers.current();
    const answer = await ask(buyer);
    const refused = answer.kind === "error" && answer.code === "UNAUTHENTICATED";
    return buyer && refused ? ask(await buyers.renew(buyer)) : answer;
  };
}

/** Pays at a payment provider: what the money came to. */
export type PayAt = (url: string) => Promise<Answer<{ readonly outcome: string }>>;

/** Longer than the provider waits for our own answer. */
const PAY_TIMEOUT_MS = 15_000;

/** At the demo's own provider, whose addresses are paths of this server. */
export const payAt: PayAt = async (url) => {
  try {
    const response = await fetch(new URL(url, location.origin), {
      method: "POST",
      headers: { accept: "application/json" },
      signal: AbortSignal.timeout(PAY_TIMEOUT_MS),
    });
    const { outcome } = (await response.json()) as { outcome?: string };
    if (response.ok && outcome !== undefined) return { kind: "data", data: { outcome } };
    const code = response.status >= 500 ? "SERVICE_UNAVAILABLE" : "ERROR";
    return failure(code, "The payment was not accepted.");
  } catch {
    return unreachable("The payment provider can't be reached.");
  }
};

type DataOf<Asked> = Asked extends Document<infer Data, infer _Variables> ? Data : never;

async function post<Data>(query: string, variables: object, token: string): Promise<Answer<Data>> {
  let body: GraphQLAnswer<Data>;
  try {
    const response = await fetch("/graphql", {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
      body: JSON.stringify({ query, variables }),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    body = (await response.json()) as GraphQLAnswer<Data>;
  } catch {
    return unreachable("The shop can't be reached.");
  }
  const [error] = body.errors ?? [];
  if (error) {
    const { code = "INTERNAL_SERVER_ERROR", retryAfterMs = null } = error.extensions ?? {};
    return { kind: "error", code, message: error.message, retryAfterMs };
  }
  return body.data ? { kind: "data", data: body.data } : unreachable("The answer can't be read.");
}

function unreachable(message: string): Answer<never> {
  return failure("UNREACHABLE", message);
}

function failure(code: string, message: string): Answer<never> {
  return { kind: "error", code, message, retryAfterMs: null };
}
