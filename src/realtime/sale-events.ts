import { Redis } from "ioredis";
import { z } from "zod";
import { SECOND } from "../domain/time.js";
import { orWhenLate } from "../lifecycle/pause.js";
import { saleKeys } from "../redis/keys.js";
import { closeClient, type RedisLink, reconnectDelay } from "../redis/link.js";
import { createEcho } from "./echo.js";

/** What the scripts publish on a sale's channel. A hint that something changed; what it is now is read from the stores. */
const message = z.discriminatedUnion("kind", [
  z.object({
    kind: z.literal("requests"),
    requests: z.array(z.tuple([z.string(), z.number()])),
    /** items that were sold out and have units again */
    restocked: z.array(z.string()).optional(),
  }),
  z.object({ kind: z.literal("reloaded") }),
  z.object({ kind: z.literal("state") }),
]);

/** A listener's reason to read again. `rank` is the request's new one, where it is known. */
export type SaleHint = { kind: "request"; rank: number } | { kind: "everything" };

/** What a follower of a whole sale has to know: items that have units again, or that anything may have changed. */
export type SaleNews = { kind: "restocked"; itemIds: readonly string[] } | { kind: "everything" };

/** A whole sale being followed. */
export interface Following {
  /**
   * Since when (performance.now()) every message about the sale was heard that the server of that run_id has published, but
   * for those of the last `heardWithinMs`, which may be under way; Infinity where that can't be said.
   */
  heardAllSince(runId: string): number;
  stop(): void;
}

export interface SaleEvents {
  /**
   * Listens to changes of one request of a sale. Resolves once the process really listens, so that what is read
   * afterwards misses nothing; while Redis is away it resolves all the same, and calls back when it is back. Returns what
   * stops it.
   */
  listen(saleId: string, requestId: string, listener: (hint: SaleHint) => void): Promise<() => void>;
  /** Listens to a whole sale from now on, in the same turn in which a message arrives. */
  follow(saleId: string, listener: (news: SaleNews) => void): Following;
  /** Listeners at present, followers not among them. */
  size(): number;
  close(): Promise<void>;
}

const PING_EVERY_MS = 5 * SECOND;

interface Channel {
  readonly byRequest: Map<string, Set<(hint: SaleHint) => void>>;
  readonly followers: Set<(news: SaleNews) => void>;
  subscribed: Promise<unknown>;
  /** when the subscription was known to be in force */
  since: number;
}

const NEVER = Number.POSITIVE_INFINITY;
/** What nobody asks about need not be proved over and over. */
const ECHO_WANTED_MS = 10 * SECOND;

export interface SaleEventsOptions {
  readonly url: string;
  /** the connection of the commands, whose server is to be heard */
  readonly redis: RedisLink;
  readonly heardWithinMs: number;
  onError(error: Error): void;
}

/** One Redis subscription a sale and process, fanned out in memory. */
export function createSaleEvents({ url, redis, heardWithinMs, onError }: SaleEventsOptions): SaleEvents {
  const client = new Redis(url, {
    connectionName: "sluice:events",
    maxRetriesPerRequest: null,
    connectTimeout: 2 * SECOND,
    retryStrategy: reconnectDelay,
    // A network that swallows everything looks like silence: what is asked every few seconds must be answered.
    socketTimeout: PING_EVERY_MS,
  });
  client.setMaxListeners(0);
  const pinging = setInterval(() => {
    if (client.status === "ready") client.ping().catch(() => {});
  }, PING_EVERY_MS);
  pinging.unref();
  const channels = new Map<string, Channel>();
  let size = 0;
  /** when all subscriptions of before were known to be in force on the present connection */
  let connectedSince = NEVER;
  /** when somebody last wanted to know whether everything is heard */
  let wantedAt = Number.NEGATIVE_INFINITY;
  const echo = createEcho(redis, () => performance.now() - wantedAt < ECHO_WANTED_MS);
  let hearsEcho = false;

  const all = (channel: Channel) => {
    const listeners = [...channel.byRequest.values()].flatMap((set) => [...set]);
    for (const listener of listeners) listener({ kind: "everything" });
    for (const follower of channel.followers) follower({ kind: "everything" });
  };

  client.on("error", onError);
  client.on("close", () => {
    connectedSince = NEVER;
    echo.forget();
  });
  // What was published while the connection was lost is lost: read everything again, once the subscriptions that ioredis
  // has sent before are in force, which the reply to what is sent after them tells.
  client.on("ready", async () => {
    await client.ping().then(
      () => {
        connectedSince = performance.now();
      },
      () => {},
    );
    for (const channel of channels.values()) all(channel);
  });
  client.on("message", (name: string, text: string) => {
    if (name === echo.channel) return echo.heard(text);
    const channel = channels.get(name);
    if (!channel) return;
    const parsed = message.safeParse(parseJson(text));
    if (!parsed.success || parsed.data.kind !== "requests") return all(channel);
    const { requests, restocked: itemIds } = parsed.data;
    if (itemIds) for (const follower of channel.followers) follower({ kind: "restocked", itemIds });
    for (const [requestId, rank] of requests) {
      for (const listener of channel.byRequest.get(requestId) ?? []) listener({ kind: "request", rank });
    }
  });

  const open = (name: string): Channel => {
    const present = channels.get(name);
    if (present) return present;
    const subscribed = client.subscribe(name).then(() => {
      channel.since = performance.now();
    }, onError);
    const channel: Channel = { byRequest: new Map(), followers: new Set(), subscribed, since: NEVER };
    channels.set(name, channel);
    return channel;
  };
  const closeUnused = (name: string, channel: Channel) => {
    if (channel.byRequest.size > 0 || channel.followers.size > 0 || channels.get(name) !== channel) return;
    channels.delete(name);
    client.unsubscribe(name).catch(onError);
  };

  return {
    async listen(saleId, requestId, listener) {
      const name = saleKeys(saleId).events;
      const channel = open(name);
      const set = setOf(channel.byRequest, requestId);
      set.add(listener);
      size += 1;
      let listening = true;
      const subscribed = channel.subscribed.then(() => true);
      if (!(await orWhenLate(subscribed, SECOND, () => false))) {
        // Whatever is read meanwhile may miss something: read again when the process really listens.
        void subscribed.then(() => listening && listener({ kind: "everything" }));
      }
      return () => {
        if (!listening) return;
        listening = false;
        size -= 1;
        set.delete(listener);
        if (set.size === 0) channel.byRequest.delete(requestId);
        closeUnused(name, channel);
      };
    },
    follow(saleId, listener) {
      if (!hearsEcho) client.subscribe(echo.channel).catch(onError);
      hearsEcho = true;
      const name = saleKeys(saleId).events;
      const channel = open(name);
      channel.followers.add(listener);
      const followedSince = performance.now();
      wantedAt = followedSince;
      return {
        heardAllSince(runId) {
          wantedAt = performance.now();
          if (wantedAt - echo.heardSentAt(runId) > heardWithinMs) return NEVER;
          return Math.max(connectedSince, channel.since, followedSince);
        },
        stop() {
          channel.followers.delete(listener);
          closeUnused(name, channel);
        },
      };
    },
    size: () => size,
    close() {
      clearInterval(pinging);
      echo.stop();
      return closeClient(client);
    },
  };
}

function setOf<Key, Value>(map: Map<Key, Set<Value>>, key: Key): Set<Value> {
  const present = map.get(key);
  if (present) return present;
  const made = new Set<Value>();
  map.set(key, made);
  return made;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
