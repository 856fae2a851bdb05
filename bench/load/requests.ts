/** The requests that a generator sends, made before it sends the first: what is left to do then is to hand out buffers. */
import { randomUUID } from "node:crypto";
import type { LoadPlan } from "./plan.js";
import { signBuyerToken } from "./token.js";

/** The operation that all servers are asked for. */
const RESERVE =
  "mutation ($input: ReserveInput!) { reserve(input: $input) { status reservation { requestId status ahead } message } }";

/** The last group of a UUID, in which requests are counted. */
const COUNTER_DIGITS = 12;

/** Hands out the next request; null when there is none left. */
export type NextRequest = () => Buffer | null;

/** Builds one request for each buyer, with a token and a requestId of its own. */
export function prepareRequests({ url, buyers, target, auth }: LoadPlan): NextRequest {
  const { host } = new URL(url);
  const made = Array.from({ length: buyers.count }, (_, at) => {
    const requestId = randomUUID();
    const variables = { input: { ...target, requestId, quantity: 1 } };
    const body = JSON.stringify({ query: RESERVE, variables });
    const token = signBuyerToken(auth, `${buyers.prefix}${at}`);
    const request = Buffer.from(
      `POST /graphql HTTP/1.1\r\nhost: ${host}\r\ncontent-type: application/json\r\nauthorization: Bearer ${token}\r\n` +
        `accept: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    );
    return { request, counterAt: request.indexOf(requestId) + requestId.length - COUNTER_DIGITS };
  });

  let handedOut = 0;
  return () => {
    const next = made[handedOut % made.length];
    if (!next || (buyers.behaviour === "once" && handedOut >= made.length)) return null;
    // Who comes again wants another one. An answer is always read before its buffer comes round again.
    if (handedOut >= made.length) {
      next.request.write(handedOut.toString(16).padStart(COUNTER_DIGITS, "0"), next.counterAt, "latin1");
    }
    handedOut += 1;
    return next.request;
  };
}
