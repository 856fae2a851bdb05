import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { beforeAll, describe, expect, it } from "vitest";
import { saleKeys } from "../../src/redis/keys.js";
import { operate } from "../support/operate.js";
import type { NodeProcess } from "../support/processes.js";
import {
  type Api,
  prepareSluice,
  reserve,
  type TestSale,
  type TestSluice,
  waitUntilDecided,
} from "../support/sluice.js";
import { type Subscription, subscribe, TRANSPORTS, type Transport } from "../support/subscriptions.js";
import { atEndOfFile } from "../support/test-file.js";
import { waitFor } from "../support/wait.js";

interface ReservationValue {
  readonly requestId: string;
  readonly status: string;
  readonly version: number;
  readonly order: { readonly status: string } | null;
}

interface SaleValue {
  readonly state: string;
  readonly pauseReason: string | null;
  readonly version: number;
  readonly items: readonly { readonly remaining: number }[];
}

let sluice: TestSluice;
let first: Api;
let second: Api;
let redis: Redis;
let operator: string;

beforeAll(async () => {
  sluice = await prepareSluice();
  [first, second] = await Promise.all([sluice.startApi(), sluice.startApi()]);
  operator = await sluice.token("operator", "olga");
  redis = new Redis(sluice.redis.url);
  atEndOfFile(() => redis.disconnect());
});

describe.each(TRANSPORTS)("over %s", (transport) => {
  it("whoever subscribes before reserve, while queued or after success hears of success, on another instance too", async () => {
    const sale = await sluice.createSale(first);
    const { token, requestId, watch } = await buyer(transport, sale);
    const stranger = await buyer(transport, sale);
    const fromBefore = [watch(second), watch(first), stranger.watch(second, requestId)];
    const byOperator = watch(second, requestId, operator);
    await listening(sale, 2);

    await reserve(first, token, sale, { requestId });
    const whileQueued = watch(second);
    expect(await whileQueued.next()).toMatchObject({ requestId, status: "QUEUED", order: null });
    await Promise.all([fromBefore[0], fromBefore[1], byOperator].map((each) => each?.until(isQueued, "QUEUED")));

    const worker = await sluice.startWorker();
    const own = [fromBefore[0], fromBefore[1], byOperator, whileQueued] as Subscription<ReservationValue>[];
    for (const each of own) await each.until(isSuccess, "SUCCESS");
    const afterwards = watch(second);
    expect(await afterwards.next()).toMatchObject({
      requestId,
      status: "SUCCESS",
      order: { status: "PENDING_PAYMENT" },
    });
    await end(worker);

    for (const { values } of [...own, afterwards]) expectGrowing(values.map(({ version }) => version));
    expect(fromBefore[2]?.values, "what a stranger got").toEqual([]);

    for (const each of [...own, afterwards, fromBefore[2]]) each?.close();
    await listening(sale, 0);
  });

  it("saleUpdates shows the present state, the stock as it falls, a pause, and completes when the sale is closed", async () => {
    const sale = await sluice.createSale(first, { initial: [10] });
    const updates = watchSale(transport, second, sale);
    expect(await updates.next()).toMatchObject({ state: "OPEN", items: [{ remaining: 10 }] });

    const { token } = await buyer(transport, sale);
    await reserve(first, token, sale, { quantity: 2 });
    await updates.until(({ items }) => items[0]?.remaining === 8, "the stock to fall");
    await operate(sluice, first, "pauseSale", sale);
    await updates.until(({ state, pauseReason }) => state === "PAUSED" && pauseReason === "a test", "the pause");
    await operate(sluice, first, "closeSale", sale);
    expect(await updates.done).toEqual({ kind: "completed" });
    expect(updates.values.at(-1)).toMatchObject({ state: "CLOSED", pauseReason: null });
    const versions = updates.values.map(({ version }) => version);
    expect(versions).toEqual([...versions].sort((one, other) => one - other));
  });

  it("saleUpdates of a closed sale gives it once and completes; of a draft or none it is NOT_FOUND", async () => {
    const sale = await sluice.createSale(first);
    await operate(sluice, first, "closeSale", sale);
    const updates = watchSale(transport, second, sale);
    expect(await updates.done).toEqual({ kind: "completed" });
    expect(updates.values).toMatchObject([{ state: "CLOSED" }]);
    const draft = await sluice.createSale(first, { open: false });
    for (const id of [draft.id, "there-is-none", "a:b"]) {
      expect(await watchSale(transport, second, { id, items: [] }).done).toEqual({
        kind: "failed",
        codes: ["NOT_FOUND"],
      });
    }
  });

  it("a caller without a token is UNAUTHENTICATED for a reservation, and served a sale", async () => {
    const sale = await sluice.createSale(first);
    const refused = watchReservation(transport, first, null, sale, randomUUID());
    expect(await refused.done).toEqual({ kind: "failed", codes: ["UNAUTHENTICATED"] });
    const served = watchSale(transport, first, sale);
    expect(await served.next()).toMatchObject({ state: "OPEN" });
    served.close();
  });

  it("a token that expires ends what it opened", async () => {
    const sale = await sluice.createSale(first);
    const brief = await sluice.token("buyer", "brief", 2);
    const updates = watchReservation(transport, first, brief, sale, randomUUID());
    // A socket ends at the same moment as what it carries: the client sees whichever is first, never a completion.
    const refused = { kind: "failed", codes: ["UNAUTHENTICATED"] };
    const cut = { kind: "disconnected", closeCode: 4403 };
    expect(transport === "WebSocket" ? [refused, cut] : [refused]).toContainEqual(await updates.done);
    await listening(sale, 0);
  });

  it("an instance that stops tells its subscribers to go, and elsewhere they get what they waited for", async () => {
    const sale = await sluice.createSale(first);
    const { token, requestId, watch } = await buyer(transport, sale);
    const stopping = await sluice.startApi();
    const cutOff = watch(stopping);
    await listening(sale, 1);
    await reserve(first, token, sale, { requestId });
    await cutOff.until(isQueued, "QUEUED");

    stopping.kill("SIGTERM");
    const ending = await cutOff.done;
    if (transport === "WebSocket") expect(ending).toEqual({ kind: "disconnected", closeCode: 1001 });
    else expect(ending).toEqual({ kind: "failed", codes: ["SERVICE_UNAVAILABLE"] });
    expect((await stopping.exited).code).toBe(0);

    const elsewhere = watch(second);
    const worker = await sluice.startWorker();
    await elsewhere.until(isSuccess, "SUCCESS");
    await end(worker);
    elsewhere.close();
  });
});

it("a WebSocket whose token is not valid is closed with 4403, an SSE request with it is refused", async () => {
  const sale = await sluice.createSale(first);
  const overWebSocket = watchReservation("WebSocket", first, "no token", sale, randomUUID());
  expect(await overWebSocket.done).toEqual({ kind: "disconnected", closeCode: 4403 });
  const overSse = watchReservation("SSE", first, "no token", sale, randomUUID());
  expect(await overSse.done).not.toEqual({ kind: "completed" });
});

it("a Redis that is killed and comes back costs a subscriber nothing, not even what was published before his instance was back", async () => {
  const sale = await sluice.createSale(first);
  const sent = await Promise.all(TRANSPORTS.map((transport) => buyer(transport, sale)));
  const subscriptions = sent.map(({ watch }) => watch(second));
  await listening(sale, 1);
  for (const { token, requestId } of sent) await reserve(first, token, sale, { requestId });
  for (const each of subscriptions) await each.until(isQueued, "QUEUED");

  // Frozen, the instance finds out last of all that its connection is gone.
  second.kill("SIGSTOP");
  await sluice.redis.kill();
  await sluice.redis.restart();
  const worker = await sluice.startWorker();
  for (const { token, requestId } of sent) {
    expect(await waitUntilDecided(first, token, sale.id, requestId)).toMatchObject({ status: "SUCCESS" });
  }
  second.kill("SIGCONT");

  for (const each of subscriptions) {
    // Sooner than what is watched is read again anyway.
    await each.until(isSuccess, "SUCCESS", 10_000);
    expectGrowing(each.values.map(({ version }) => version));
    each.close();
  }
  await end(worker);
  await listening(sale, 0);
});

let buyers = 0;

/** A buyer of his own with one request, and how he watches it: or somebody else's, or with another token. */
async function buyer(transport: Transport, sale: TestSale) {
  buyers += 1;
  const token = await sluice.token("buyer", `buyer-${buyers}`);
  const requestId = randomUUID();
  const watch = (api: Api, ofRequest = requestId, withToken = token) =>
    watchReservation(transport, api, withToken, sale, ofRequest);
  return { token, requestId, watch };
}

function watchReservation(transport: Transport, api: Api, token: string | null, sale: TestSale, requestId: string) {
  const query = `subscription ($s: ID!, $r: UUID!) {
    reservationUpdates(saleId: $s, requestId: $r) { requestId status version order { status } }
  }`;
  return subscribe<ReservationValue>(transport, api, token, { query, variables: { s: sale.id, r: requestId } });
}

function watchSale(transport: Transport, api: Api, sale: TestSale): Subscription<SaleValue> {
  const query = "subscription ($s: ID!) { saleUpdates(saleId: $s) { state pauseReason version items { remaining } } }";
  return subscribe<SaleValue>(transport, api, null, { query, variables: { s: sale.id } });
}

/** Waits until this many processes listen to the sale's events. */
async function listening(sale: TestSale, processes: number): Promise<void> {
  const channel = saleKeys(sale.id).events;
  await waitFor(async () => Number((await redis.pubsub("NUMSUB", channel))[1]) === processes, {
    what: `${processes} processes to listen to the sale`,
  });
}

async function end(process: NodeProcess): Promise<void> {
  process.kill("SIGKILL");
  await process.exited;
}

const isQueued = ({ status }: ReservationValue) => status === "QUEUED";
const isSuccess = ({ status }: ReservationValue) => status === "SUCCESS";

function expectGrowing(versions: readonly number[]): void {
  expect(versions).toEqual([...new Set(versions)].sort((one, other) => one - other));
}
