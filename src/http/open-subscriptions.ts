/**
 * The subscriptions that are open in this process, so that they can be ended from outside: when a token expires, and
 * when the server stops. An ended stream says why in its last value; a client that only saw it complete would take it
 * for "nothing left to wait for".
 */
import type { ExecutionResult } from "graphql";
import { isAsyncIterable, type Plugin } from "graphql-yoga";
import type { Gauge } from "prom-client";
import { unauthenticated } from "../admission/identity.js";
import type { SluiceError } from "../domain/errors.js";
import type { GraphQLContext } from "../graphql/context.js";
import { toClientError } from "../graphql/errors.js";
import type { RequestLog } from "../observability/logger.js";
import { atTime } from "./at-time.js";
import { subscribedField } from "./subscribed-field.js";

export interface OpenSubscriptions {
  readonly plugin: Plugin<GraphQLContext>;
  /** Ends all that are open, and from now on each one as soon as it is opened. */
  readonly endAll: (error: SluiceError) => void;
}

/** A register of open subscriptions, kept by its plugin, and counted. */
export function trackSubscriptions(counted: Gauge<"field" | "transport">): OpenSubscriptions {
  const open = new Set<EndableStream>();
  let ending: SluiceError | undefined;

  const track = (source: AsyncIterable<ExecutionResult>, context: GraphQLContext, field: string) => {
    const { log, principal } = context;
    // Yoga puts a request there where there is one.
    const labels = { field, transport: "request" in context ? "sse" : "websocket" };
    const stream = new EndableStream(source, log, () => {
      open.delete(stream);
      counted.dec(labels);
      cancelExpiry?.();
    });
    open.add(stream);
    counted.inc(labels);
    const cancelExpiry =
      principal && atTime(principal.expiresAt, () => stream.end(unauthenticated("The token has expired.")));
    if (ending) stream.end(ending);
    return stream;
  };

  return {
    plugin: {
      onSubscribe: ({ args }) => ({
        onSubscribeResult: ({ result, setResult }) => {
          if (!isAsyncIterable<ExecutionResult>(result)) return;
          setResult(track(result, args.contextValue, subscribedField(args.document, args.operationName)));
        },
      }),
    },
    endAll(error) {
      ending = error;
      for (const stream of [...open]) stream.end(error);
    },
  };
}

type Next = IteratorResult<ExecutionResult, undefined>;
const DONE: Next = { done: true, value: undefined };

/** A stream that gives its reader one last value and completes when it is ended, also while the reader waits. */
class EndableStream implements AsyncGenerator<ExecutionResult, undefined, undefined> {
  readonly #source: AsyncIterator<ExecutionResult>;
  #waiting: ((next: Next) => void) | undefined;
  #last: ExecutionResult | undefined;
  #closed = false;

  constructor(
    source: AsyncIterable<ExecutionResult>,
    private readonly log: RequestLog,
    private readonly onClosed: () => void,
  ) {
    this.#source = source[Symbol.asyncIterator]();
  }

  end(error: SluiceError): void {
    if (this.#closed) return;
    this.#last = { errors: [toClientError(error, this.log)] };
    this.#close();
    this.#waiting?.(this.#taken());
  }

  // Not Promise.race with one promise for the end: each value would leave a reaction on it for as long as the stream lives.
  next(): Promise<Next> {
    if (this.#closed) return Promise.resolve(this.#taken());
    return new Promise<Next>((resolve, reject) => {
      this.#waiting = resolve;
      this.#source.next().then(
        (next) => {
          if (next.done) this.#close();
          resolve(next.done ? DONE : next);
        },
        (error: unknown) => {
          this.#close();
          reject(error);
        },
      );
    });
  }

  return(): Promise<Next> {
    this.#last = undefined;
    this.#close();
    this.#waiting?.(DONE);
    return Promise.resolve(DONE);
  }

  throw(error: unknown): Promise<Next> {
    this.#close();
    return Promise.reject(error);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  #taken(): Next {
    const last = this.#last;
    this.#last = undefined;
    return last ? { done: false, value: last } : DONE;
  }

  #close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.onClosed();
    // Not awaited: a generator that waits for its next event returns only when that comes.
    this.#source
      .return?.()
      ?.catch((error: unknown) => this.log.warn({ err: error }, "a subscription did not end cleanly"));
  }
}
