import type { TokenAuth } from "../load/token.js";

/** Who subscribes to what, each over a WebSocket of his own. */
export interface SubscriberPlan {
  readonly url: string;
  readonly auth: TokenAuth;
  readonly query: string;
  readonly subscribers: readonly { readonly subject: string; readonly variables: Readonly<Record<string, unknown>> }[];
}

/** What the two processes say to each other: the plan, how all of them have heard a first value, or why not. */
export type FromSubscribers = { readonly open: number } | { readonly failed: string };
