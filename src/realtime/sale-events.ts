import { Redis } from "ioredis";
import { z } from "zod";
import { SECOND } from "../domain/time.js";
import { orWhenLate } from "../lifecycle/pause.js";
import { saleKeys } from "../redis/keys.js";
import { closeClient, reconnectDelay } from "../redis/link.js";

/** What the scripts publish on a sale's channel. A hint that something changed; what it is now is read from the stores. */
const message = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("requests"), requests: z.array(z.tuple([z.string(), z.number()])) }),
  z.object({ kind: z.literal("reloaded") }),
  z.object({ kind: z.literal("state") }),
]);

/** A listener's reason to read again. `rank` is the request's new one, where it is known. */
export type SaleHint = { kind: "request"; rank: number } | { kind: "everything" };

export interface SaleEvents {
  /**
   * Listens to changes of one request of a sale. Resolves once the process really listens, so that what is read
   * afterwards misses nothing; while Redis is away it resolves all the same, and calls back when it is back. Returns what
   * stops it.
   */
  listen(saleId: string, requestId: string, listener: (hint: SaleHint) => void): Promise<() => void>;
  /** Listeners at present. */
  size(): number;
  close(): Promise<void>;
}

const PING_EVERY_MS = 5 * SECOND;

interface Channel {
  readonly byRequest: Map<string, Set<(hint: SaleHint) => void>>;
  subscribed: Promise<unknown>;
}

/** One Redis subscription a sale and process, fanned out in memory. */
export function createSaleEvents(url: string, onError: (error: Error) => void): SaleEvents {
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

  const all = (channel: Channel) => {
    const listeners = [...channel.byRequest.values()].flatMap((set) => [...set]);
    for (const listener of listeners) listener({ kind: "everything" });
  };

  client.on("error", onError);
  // What was published while the connection was lost is lost: read everything again, once the subscriptions that ioredis
  // has sent before are in force, which the reply to what is sent after them tells.
  client.on("ready", async () => {
    await client.ping().catch(() => {});
    for (const channel of channels.values()) all(channel);
  });
  client.on("message", (name: string, text: string) => {
    const channel = channels.get(name);
    if (!channel) return;
    const parsed = message.safeParse(parseJson(text));
    if (!parsed.success || parsed.data.kind !== "requests") return all(channel);
    for (const [requestId, rank] of parsed.data.requests) {
      for (const listener of channel.byRequest.get(requestId) ?? []) listener({ kind: "request", rank });
    }
  });

  const open = (name: string): Channel => {
    let channel = channels.get(name);
    if (!channel) {
      channel = { byRequest: new Map(), subscribed: client.subscribe(name).catch(onError) };
      channels.set(name, channel);
    }
    return channel;
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
        if (channel.byRequest.size === 0 && channels.get(name) === channel) {
          channels.delete(name);
          client.unsubscribe(name).catch(onError);
        }
      };
    },
    size: () => size,
    close() {
      clearInterval(pinging);
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
