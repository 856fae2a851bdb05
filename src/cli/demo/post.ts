/** One POST over a kept connection, as both the crowd and the till send them. */
import { type RequestOptions, request } from "node:http";
import { SECOND } from "../../domain/time.js";

/** What became of one call. */
export type Reply<Body> =
  | { readonly kind: "answered"; readonly body: Body; readonly httpStatus: number; readonly ms: number }
  /** the connection failed, or nothing came in time */
  | { readonly kind: "unreachable"; readonly why: string }
  /** we hung up before the answer was read */
  | { readonly kind: "hung_up" };

/** What a GraphQL call answers with. */
export interface GraphQLBody<Data> {
  readonly data?: Data | null;
  readonly errors?: readonly {
    readonly extensions?: { readonly code?: string; readonly retryAfterMs?: number };
  }[];
}

export interface Letter {
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  /** cuts the connection before the answer is read */
  readonly hangUp?: boolean;
}

const ANSWER_WITHIN_MS = 15 * SECOND;

/** Sends a JSON text and reads the JSON that comes back. Never rejects. */
export function post<Body>(place: RequestOptions, { headers, text, hangUp = false }: Letter): Promise<Reply<Body>> {
  return new Promise((resolve) => {
    const sized = { "content-type": "application/json", "content-length": Buffer.byteLength(text), ...headers };
    const sentAt = performance.now();
    const options = { ...place, method: "POST", headers: sized, timeout: ANSWER_WITHIN_MS };
    const call = request(options, (response) => {
      if (hangUp) return call.destroy();
      let body = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        body += chunk;
      });
      response.once("error", (error) => resolve(unreachable(error)));
      response.once("end", () => resolve(parse(body, response.statusCode ?? 0, performance.now() - sentAt)));
    });
    call.once("timeout", () => call.destroy(new Error("no answer in time")));
    call.once("error", (error) => resolve(hangUp ? { kind: "hung_up" } : unreachable(error)));
    call.once("close", () => resolve({ kind: "hung_up" }));
    // What was written is on its way: the server gets it, and its answer finds nobody.
    if (hangUp) call.once("finish", () => setImmediate(() => call.destroy()));
    call.end(text);
  });
}

function parse<Body>(text: string, httpStatus: number, ms: number): Reply<Body> {
  try {
    return { kind: "answered", body: JSON.parse(text) as Body, httpStatus, ms };
  } catch {
    return { kind: "unreachable", why: "an answer that is no JSON" };
  }
}

function unreachable(error: NodeJS.ErrnoException): Reply<never> {
  return { kind: "unreachable", why: error.code ?? error.message };
}
