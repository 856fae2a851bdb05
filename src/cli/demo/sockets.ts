/** The crowd's connections: few enough for any machine, kept open, each with one request at a time. */
import { Agent } from "node:http";
import { urlToHttpOptions } from "node:url";
import { type GraphQLBody, post, type Reply } from "./post.js";

/** What a GraphQL call of reserve answers with. */
export type ReserveReply = Reply<GraphQLBody<{ readonly reserve: Reserved }>>;

export interface Reserved {
  readonly status: string;
  readonly retryAfterMs: number | null;
  readonly reservation: {
    readonly requestId: string;
    readonly status: string;
    readonly order: { readonly id: string; readonly status: string } | null;
  } | null;
}

export interface Wish {
  readonly saleId: string;
  readonly itemId: string;
  readonly requestId: string;
  readonly quantity: number;
}

export interface Sockets {
  /** One call of reserve, as soon as a socket is free. With `hangUp` the connection is cut before the answer is read. */
  reserve(token: string, wish: Wish, hangUp?: boolean): Promise<ReserveReply>;
  /** How many of them may be under way at once from now on: SOCKETS, unless somebody holds the crowd back. */
  admit(atOnce: number): void;
  close(): void;
}

/** As many as leave the servers' own work alone, and yet keep them busy without a pause. */
export const SOCKETS = 256;

const RESERVE = `mutation Reserve($input: ReserveInput!) {
  reserve(input: $input) { status retryAfterMs reservation { requestId status order { id status } } }
}`;

/** Opens nothing yet: a socket is opened when it is needed first. */
export function openSockets(apiUrl: string): Sockets {
  const agent = new Agent({ keepAlive: true, maxSockets: SOCKETS });
  const place = { ...urlToHttpOptions(new URL(`${apiUrl}/graphql`)), agent };
  const limit = limitAtOnce(SOCKETS);
  return {
    reserve: (token, input, hangUp = false) => {
      const text = JSON.stringify({ query: RESERVE, variables: { input } });
      return limit.run(() => post(place, { headers: { authorization: `Bearer ${token}` }, text, hangUp }));
    },
    admit: limit.admit,
    close: () => agent.destroy(),
  };
}

/** Lets so many pieces of work run at a time, the others in the order in which they came. */
function limitAtOnce(atFirst: number) {
  const waiting: (() => void)[] = [];
  let atOnce = atFirst;
  let running = 0;
  const next = () => {
    while (running < atOnce && waiting.length > 0) {
      running += 1;
      waiting.shift()?.();
    }
  };
  return {
    admit(count: number): void {
      atOnce = count;
      next();
    },
    async run<Result>(work: () => Promise<Result>): Promise<Result> {
      await new Promise<void>((turn) => {
        waiting.push(turn);
        next();
      });
      try {
        return await work();
      } finally {
        running -= 1;
        next();
      }
    },
  };
}
