/** What the tests of the scripts share: a private Redis with everything on it told and untold, and sales made to order. */
import { Redis } from "ioredis";
import { expect } from "vitest";
import { HOUR, MINUTE } from "../../src/domain/time.js";
import { type SaleKeys, saleKeys } from "../../src/redis/keys.js";
import { connectRedis, type RedisLink } from "../../src/redis/link.js";
import { beginLoad, finishLoad, type LoadHeader, type LoadRequest, loadChunk } from "../../src/redis/load.js";
import { callReserve, type ReserveCall, type ReserveReply } from "../../src/redis/reserve.js";
import { startTestRedis, type TestRedis } from "../support/redis.js";
import { atEndOfFile } from "../support/test-file.js";
import { waitFor } from "../support/wait.js";

/** All that can be seen of a key. */
export type KeyState = { type: string; dump: string; expiresAt: number };
export type Published = { channel: string; message: unknown };

export type Bench = {
  readonly redis: TestRedis;
  readonly link: RedisLink;
  /** For looking and breaking; unlike the link it reads replies of any kind. */
  readonly client: Redis;
  /** Empties the server, once it is there, and the connection has met it. */
  clear(): Promise<void>;
  /** Every key on the server. */
  snapshot(): Promise<Record<string, KeyState>>;
  /** What was published since this was asked last. */
  published(): Promise<Published[]>;
  /** Holds `act` to changing not one key, not even how long it lives, and to publishing nothing. */
  untouchedBy<Reply>(act: () => Promise<Reply>): Promise<Reply>;
};

/** Starts a Redis for this file. */
export async function startBench(): Promise<Bench> {
  const redis = await startTestRedis();
  const link = await connect(redis.url);
  const client = new Redis(redis.url);
  const listener = new Redis(redis.url);
  for (const open of [client, listener]) {
    // Tests restart the server: they come back by themselves.
    open.on("error", () => {});
    atEndOfFile(() => open.disconnect());
  }

  const heard: Published[] = [];
  listener.on("pmessage", (_pattern, channel: string, text: string) => {
    heard.push({ channel, message: JSON.parse(text) });
  });
  await listener.psubscribe("*");

  const snapshot = async () => {
    const keys = (await client.keys("*")).sort();
    const states = keys.map(async (key): Promise<[string, KeyState]> => {
      const [type, dump, expiresAt] = await Promise.all([
        client.type(key),
        client.dumpBuffer(key),
        client.pexpiretime(key),
      ]);
      return [key, { type, dump: dump?.toString("base64") ?? "", expiresAt }];
    });
    return Object.fromEntries(await Promise.all(states));
  };
  const published = async () => {
    // A mark comes after everything that was published before it. After a restart nobody listens at first.
    await waitFor(async () => (await client.publish("mark", "0")) > 0, { what: "the listener to be back" });
    const at = () => heard.findIndex(({ channel }) => channel === "mark");
    await waitFor(() => at() >= 0, { what: "the mark behind what was published" });
    return heard.splice(0, at() + 1).slice(0, -1);
  };
  return {
    redis,
    link,
    client,
    clear: async () => {
      await Promise.all([link.whenUsable(20_000), client.flushall()]);
    },
    snapshot,
    published,
    untouchedBy: async (act) => {
      await published();
      const before = await snapshot();
      const reply = await act();
      expect(await snapshot()).toEqual(before);
      expect(await published()).toEqual([]);
      return reply;
    },
  };
}

/** A connection as our processes have them, which ends with the file. */
export async function connect(url: string, commandTimeoutMs = 20_000): Promise<RedisLink> {
  const link = connectRedis({ url, name: "test", commandTimeoutMs, onError: () => {} });
  atEndOfFile(() => link.close());
  await link.whenUsable(20_000);
  return link;
}

export type TestSale = { readonly id: string; readonly keys: SaleKeys; readonly header: LoadHeader };

export type SaleOptions = Partial<Omit<LoadHeader, "saleId" | "remaining">> & {
  stock?: Record<string, number>;
  requests?: readonly LoadRequest[];
};

let sales = 0;

/** A sale that exists nowhere yet. */
export function newSale({ stock = { shirt: 10 }, requests: _, ...header }: SaleOptions = {}): TestSale {
  sales += 1;
  const id = `sale-${sales}`;
  return {
    id,
    keys: saleKeys(id),
    header: {
      saleId: id,
      epoch: 1,
      state: "OPEN",
      stateVersion: 1,
      opensAt: new Date(Date.now() - HOUR),
      closesAt: new Date(Date.now() + HOUR),
      maxPerBuyer: 4,
      backlogLimit: 1_000,
      remaining: new Map(Object.entries(stock)),
      ...header,
    },
  };
}

/** A sale that buyers can be let into, loaded as our processes load one. */
export async function openSale({ link }: Bench, options: SaleOptions = {}): Promise<TestSale> {
  const sale = newSale(options);
  await loadAgain(link, sale, {}, options.requests);
  return sale;
}

/** Loads a sale from begin to finish, each of which has to succeed. */
export async function loadAgain(
  link: RedisLink,
  sale: TestSale,
  header: Partial<LoadHeader>,
  requests: readonly LoadRequest[] = [],
): Promise<void> {
  const whole = { ...sale.header, ...header };
  expect(await beginLoad(link, whole)).toBe("ok");
  if (requests.length > 0) expect(await loadChunk(link, sale.id, whole.epoch, requests)).toBe("ok");
  expect(await finishLoad(link, sale.id, whole.epoch)).toBe("ok");
}

/** The same id for the same number. */
export function requestId(number: number): string {
  return `00000000-0000-4000-8000-${String(number).padStart(12, "0")}`;
}

/** A request as a load brings it. */
export function loadRequest(number: number, changes: Partial<LoadRequest> = {}): LoadRequest {
  return {
    requestId: requestId(number),
    buyerId: `buyer-${number}`,
    itemId: "shirt",
    quantity: 1,
    stage: "QUEUED",
    reason: null,
    acceptedAt: new Date(1_700_000_000_000 + number),
    seq: number,
    stands: "undecided",
    ...changes,
  };
}

/** The request of that number, by the buyer of that number, for one shirt. */
export function reserve(
  link: RedisLink,
  sale: TestSale,
  number: number,
  changes: Partial<ReserveCall> = {},
): Promise<ReserveReply> {
  return callReserve(link, {
    saleId: sale.id,
    requestId: requestId(number),
    buyerId: `buyer-${number}`,
    itemId: "shirt",
    quantity: 1,
    notAfterMs: link.clock.now() + MINUTE,
    accept: true,
    ...changes,
  });
}

/** Reserves, and fails the test where that is not accepted. */
export async function accepted(...call: Parameters<typeof reserve>) {
  const reply = await reserve(...call);
  if (reply.kind !== "accepted") throw new Error(`not accepted: ${JSON.stringify(reply)}`);
  return reply;
}

/** What Redis has left of the shirts. */
export function stockOf({ client }: Bench, sale: TestSale): Promise<string | null> {
  return client.hget(sale.keys.stock, "shirt");
}

/** How many of each kind there are. */
export function tally(replies: readonly { kind: string }[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { kind } of replies) counts[kind] = (counts[kind] ?? 0) + 1;
  return counts;
}

/** What is no plain non-negative integer, as Redis would write one that it can count with. */
export const NO_COUNTS = [
  "",
  "-1",
  "1e3",
  "0x10",
  "3.5",
  "007",
  "00",
  "+5",
  " 5",
  "5 ",
  "5\n",
  "5\0",
  "nan",
  "inf",
  "five",
];

/** Puts another value into a field of a hash, or none. */
export async function garble({ client }: Bench, key: string, field: string, value: string | null): Promise<void> {
  if (value === null) await client.hdel(key, field);
  else await client.hset(key, field, value);
}

/** Puts a key of another type in the place of this one. */
export async function replace({ client }: Bench, key: string, type: string): Promise<void> {
  await client.del(key);
  if (type === "string") await client.set(key, "10");
  else if (type === "list") await client.rpush(key, "10");
  else if (type === "set") await client.sadd(key, "10");
  else if (type === "stream") await client.xadd(key, "*", "shirt", "10");
  else if (type === "hash") await client.hset(key, "shirt", "10");
  else await client.zadd(key, 10, "shirt");
}
