/** A Redis that lost what it had in the middle of a sale: wiped, set back to an older file, or a replica that lagged. */
import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { beforeAll, expect, it } from "vitest";
import { createTestDatabase } from "../support/database.js";
import { settleAndCheck } from "../support/invariants.js";
import {
  cancelOrder,
  confirmPayment,
  letPass,
  placeOrder,
  reserveInTheEnd,
  type TestOrder,
} from "../support/orders.js";
import { startTestRedis, type TestRedis } from "../support/redis.js";
import { type Api, prepareSluice, type TestSale, type TestSluice, waitUntilDecided } from "../support/sluice.js";
import { query } from "../support/sql.js";
import { type Subscription, subscribe, type Transport } from "../support/subscriptions.js";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy.js";
import { atEndOfFile } from "../support/test-file.js";
import { waitFor } from "../support/wait.js";

const UNITS = 30;
/** Buyers who come while it happens, so many at a time. */
const CROWD = 60;
const AT_ONCE = 6;

let redis: TestRedis;
let way: TcpProxy;
let sluice: TestSluice;
let first: Api;
let second: Api;

beforeAll(async () => {
  const [server, database] = await Promise.all([startTestRedis(), createTestDatabase()]);
  redis = server;
  way = await startTcpProxy(redis.url);
  sluice = await prepareSluice({ stores: { redis, database }, redisUrl: way.url(redis.url) });
  [first, second] = await Promise.all([sluice.startApi(), sluice.startApi()]);
});

interface Fault {
  /** What Redis has now is what it will have afterwards. */
  remember(): Promise<void>;
  strike(): Promise<void>;
}

// From the last one on the processes speak to another server.
it.each<[string, () => Fault]>([
  ["wiped", () => ({ remember: async () => {}, strike: () => redis.flushAll() })],
  ["set back to an older append-only file", olderFile],
  ["replaced by a replica that lagged", laggingReplica],
])(
  "Redis that is %s: old answers stay, past buyers are refused, no version goes back, watchers miss nothing",
  async (_name, makeFault) => {
    const fault = makeFault();
    const sale = await sluice.createSale(first, { initial: [UNITS] });
    const past = await livesOf(sale, fault);
    const waiting = await buy(sale, "waiting");
    expect(waiting.status).toBe("QUEUED");
    const answers = await Promise.all(past.all.map((order) => answerTo(sale, order)));
    expect(answers.map((answer) => answer?.order?.status)).toEqual([
      ...["PENDING_PAYMENT", "PAID", "PENDING_PAYMENT"],
      ...["CANCELLED", "EXPIRED", "REFUNDED"],
    ]);
    const [byHim, byHimToo, ofKept] = [
      watch("WebSocket", first, sale, waiting),
      watch("SSE", second, sale, waiting),
      watch("WebSocket", second, sale, past.kept),
    ];
    const stock = watchStock(second, sale);
    await Promise.all([byHim, byHimToo, ofKept, stock].map((each) => each.next()));
    const epoch = await epochOf(sale);

    const crowd = gather(sale);
    await waitFor(() => crowd.told.length > 5, { what: "the sale to be in full swing" });
    await fault.strike();
    const worker = await sluice.startWorker();
    await crowd.done;

    // Whoever was accepted has an order, also who was before; there are no more of them than units.
    const accepted = crowd.told.filter(({ status }) => status !== "SOLD_OUT");
    for (const { token, requestId } of [...accepted, waiting]) {
      expect((await waitUntilDecided(first, token, sale.id, requestId)).status).toBe("SUCCESS");
    }
    expect(await Promise.all(past.all.map((order) => answerTo(sale, order)))).toEqual(answers);
    for (const { token } of [past.kept, past.paid, past.late, waiting, ...accepted.slice(0, 3)]) {
      expect((await reserveInTheEnd(second, token, sale)).status).toBe("ALREADY_RESERVED");
    }
    for (const each of [byHim, byHimToo]) await each.until(({ status }) => status === "SUCCESS", "SUCCESS");
    await cancelOrder(first, past.kept.token, past.kept.id);
    await ofKept.until(({ order }) => order?.status === "CANCELLED", "a change after the load");

    await settleAndCheck(sluice.databaseUrl, way.url(redis.url), sale.id);
    const left = UNITS - accepted.length - [past.paid, past.late, waiting].length;
    expect(left).toBeGreaterThanOrEqual(0);
    await stock.until(({ items }) => items[0]?.remaining === left, "what is left");
    for (const { values } of [byHim, byHimToo, ofKept, stock]) {
      const versions = values.map(({ version }) => version);
      expect(versions).toEqual(versions.toSorted((one, other) => one - other));
    }
    expect(await epochOf(sale)).toBeGreaterThan(epoch);
    worker.kill("SIGKILL");
    await worker.exited;
  },
);

function olderFile(): Fault {
  let backup = "";
  return {
    remember: async () => {
      backup = redis.backup();
    },
    strike: () => redis.restart({ from: backup }),
  };
}

function laggingReplica(): Fault {
  let promote = async () => {};
  return {
    async remember() {
      const [replica, link] = await Promise.all([startTestRedis(), startTcpProxy(redis.url)]);
      const [master, client] = [new Redis(redis.url), new Redis(replica.url)];
      atEndOfFile(() => {
        for (const each of [master, client]) each.disconnect();
      });
      const { password } = new URL(redis.url);
      await client.config("SET", "masterauth", password);
      await client.replicaof("127.0.0.1", link.port);
      const keys = await master.dbsize();
      const follows = async () =>
        /master_link_status:up/.test(await client.info("replication")) && (await client.dbsize()) === keys;
      await waitFor(follows, { what: "the replica to have everything" });
      link.blackhole();
      promote = async () => {
        await client.replicaof("NO", "ONE");
        // Behind the same address and with the same password, as where a failover is arranged for.
        await client.config("SET", "requirepass", password);
        way.redirect(replica.url);
      };
    },
    strike: () => promote(),
  };
}

/** Orders of every kind. Redis will have forgotten what became of them, and the last one altogether. */
async function livesOf(sale: TestSale, fault: Fault) {
  const worker = await sluice.startWorker();
  const place = (name: string) => placeOrder(sluice, first, sale, name);
  const [kept, paid, cancelled, expired, refunded] = (await Promise.all(
    ["kept", "paid", "cancelled", "expired", "refunded"].map(place),
  )) as [TestOrder, TestOrder, TestOrder, TestOrder, TestOrder];
  await fault.remember();
  await confirmPayment(sluice, first, paid.id);
  await cancelOrder(second, cancelled.token, cancelled.id);
  await letPass(sluice, expired);
  await refund(refunded);
  const late = await place("late");
  await waitFor(async () => (await answerTo(sale, expired))?.status === "RELEASED", { what: "an order to expire" });
  worker.kill("SIGKILL");
  await worker.exited;
  return { kept, paid, late, all: [kept, paid, late, cancelled, expired, refunded] };
}

/** What a repeat of an order's request is answered. */
async function answerTo(sale: TestSale, { token, requestId }: Asked) {
  const { status, reservation } = await reserveInTheEnd(second, token, sale, { requestId });
  expect(status).toBe("DECIDED");
  return reservation;
}

interface Asked {
  readonly token: string;
  readonly requestId: string;
}

/** A new buyer, who asks again with the same request until he has an answer that is one. */
async function buy(sale: TestSale, name: string, api = first): Promise<Asked & { readonly status: string }> {
  const asked = { token: await sluice.token("buyer", name), requestId: randomUUID() };
  const { status } = await waitFor(
    async () => {
      const answer = await reserveInTheEnd(api, asked.token, sale, { requestId: asked.requestId });
      return ["PENDING", "BUSY"].includes(answer.status) ? null : answer;
    },
    { what: "an answer that stays" },
  );
  return { ...asked, status };
}

/** Buyers who come one after the other, on two instances. */
function gather(sale: TestSale) {
  const told: (Asked & { readonly status: string })[] = [];
  let came = 0;
  const lanes = Array.from({ length: AT_ONCE }, async (_, lane) => {
    while (came < CROWD) {
      came += 1;
      told.push(await buy(sale, `crowd-${came}`, lane % 2 ? second : first));
    }
  });
  return { told, done: Promise.all(lanes) };
}

async function refund({ id }: TestOrder): Promise<void> {
  const operator = await sluice.token("operator", "olga");
  await confirmPayment(sluice, first, id);
  for (const field of [
    'refundOrder(orderId: $id, reason: "r")',
    `completeRefund(orderId: $id, refundRef: "back_${id}", restock: true)`,
  ]) {
    const { errors } = await first.call(operator, `mutation ($id: ID!) { ${field} { status } }`, { id });
    expect(errors).toBeUndefined();
  }
}

interface Value {
  readonly status: string;
  readonly version: number;
  readonly order: { readonly status: string } | null;
}

function watch(transport: Transport, api: Api, sale: TestSale, { token, requestId }: Asked): Subscription<Value> {
  const text = `subscription ($s: ID!, $r: UUID!) {
    reservationUpdates(saleId: $s, requestId: $r) { status version order { status } }
  }`;
  return subscribe<Value>(transport, api, token, { query: text, variables: { s: sale.id, r: requestId } });
}

interface StockValue {
  readonly version: number;
  readonly items: readonly { readonly remaining: number }[];
}

function watchStock(api: Api, { id }: TestSale): Subscription<StockValue> {
  const text = "subscription ($id: ID!) { saleUpdates(saleId: $id) { version items { remaining } } }";
  return subscribe<StockValue>("WebSocket", api, null, { query: text, variables: { id } });
}

async function epochOf({ id }: TestSale): Promise<number> {
  const [row] = await query<{ epoch: number }>(sluice.databaseUrl, "SELECT epoch FROM sales WHERE id = $1", [id]);
  return row?.epoch ?? -1;
}
