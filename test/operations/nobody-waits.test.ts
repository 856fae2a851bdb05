/** Whoever can't be helped right now keeps nobody else waiting: sales, dead letters, events. */
import { beforeAll, expect, it } from "vitest";
import { bury } from "../../src/operations/bury.js";
import { compensateOld } from "../../src/operations/compensate.js";
import { discardDeadLetter } from "../../src/operations/discard.js";
import { createExpirer } from "../../src/operations/expire.js";
import { forward } from "../../src/operations/forward.js";
import { loadSale } from "../../src/operations/load.js";
import { relay } from "../../src/operations/relay.js";
import { writeOrders } from "../../src/operations/write-orders.js";
import type { Resources } from "../../src/resources.js";
import { startTcpProxy } from "../support/tcp-proxy.js";
import { transactionOnTheSide } from "./side.js";
import {
  ask,
  changeUntold,
  epochInDatabase,
  inRedis,
  letPass,
  openProcess,
  openSale,
  order,
  queueOne,
  remaining,
  type Stores,
  startStores,
  type TestSale,
} from "./support.js";

let stores: Stores;
let sluice: Resources;

beforeAll(async () => {
  stores = await startStores();
  sluice = await openProcess(stores);
});

async function givenUp(sale: TestSale, buyerId: string): Promise<string> {
  const requestId = await queueOne(sluice, sale, buyerId);
  await bury(sluice, sale.id, [{ requestId, stage: "write", lastError: "no luck\0", attempts: 5 }]);
  return requestId;
}

const statusesOf = async (sale: TestSale) =>
  (
    await stores.sql<{ status: string }>('SELECT status FROM dead_letters WHERE "saleId" = $1 ORDER BY id', [sale.id])
  ).map(({ status }) => status);

it("a dead letter whose request somebody holds is no reason to leave the others alone", async () => {
  const sale = await openSale(sluice, { initial: 5 });
  const held = await givenUp(sale, "anna");
  await givenUp(sale, "bert");
  const side = await transactionOnTheSide(stores, 'SELECT 1 FROM requests WHERE "requestId" = $1 FOR UPDATE', [held]);
  await expect(compensateOld(sluice, 0)).rejects.toThrow();
  expect(await statusesOf(sale)).toEqual(["OPEN", "COMPENSATED"]);
  await side.rollback();
  await compensateOld(sluice, 0);
  expect(await statusesOf(sale)).toEqual(["COMPENSATED", "COMPENSATED"]);
  await stores.expectSound(sale);
});

it("a request that was decided behind its dead letter, unheard by Redis, is told when the letter is discarded", async () => {
  const sale = await openSale(sluice, { initial: 5 });
  const requestId = await givenUp(sale, "anna");
  const proxy = await startTcpProxy(stores.redis.url);
  const cutOff = await openProcess(stores, { redisUrl: proxy.url(stores.redis.url) });
  proxy.cut();
  await writeOrders(cutOff, sale.id, [requestId]);
  expect(await inRedis(stores, sale, requestId)).toMatchObject({ stage: "QUEUED" });
  const [letter] = await stores.sql<{ id: string }>('SELECT id FROM dead_letters WHERE "saleId" = $1', [sale.id]);
  await discardDeadLetter(sluice, { saleId: sale.id, id: BigInt(letter?.id ?? 0), reason: "decided", actor: "olga" });
  expect(await inRedis(stores, sale, requestId)).toMatchObject({ stage: "ORDERED" });
  await stores.expectSound(sale);
});

it("however many sales have orders that are due, each has its turn soon", async () => {
  const sales = await Promise.all(Array.from({ length: 7 }, () => openSale(sluice, { initial: 5 })));
  for (const sale of sales) await order(sluice, sale, "anna");
  for (const sale of sales) await letPass(stores, sale);
  const expirer = createExpirer(sluice);
  await expirer.turn();
  await expirer.settled();
  for (const sale of sales) expect(await remaining(stores, sale)).toBe(5);
});

it("a job of which BullMQ has the hash and not the place is added for real the second time", async () => {
  const sale = await openSale(sluice, { initial: 5 });
  const requestId = await queueOne(sluice, sale, "anna");
  await stores.client.del(`sluice:{${sale.id}}:q:orders:wait`);
  const forwardDue = async () => {
    await stores.sql('UPDATE requests SET "dueAt" = now() WHERE "saleId" = $1', [sale.id]);
    await forward(sluice, sale.id, await epochInDatabase(stores, sale), 0);
  };
  await forwardDue();
  await forwardDue();
  expect(await sluice.queues.states(sale.id, [requestId])).toEqual(["waiting"]);
});

it("an event that can't be read stands in nobody's way once the sale was loaded", async () => {
  const sale = await openSale(sluice, { initial: 5 });
  const [strange, other] = [await order(sluice, sale, "anna"), await order(sluice, sale, "bert")];
  await changeUntold(sluice, sale, strange);
  await stores.sql(`UPDATE request_events SET "toStage" = 'NEVER_HEARD_OF' WHERE "requestId" = $1`, [strange]);
  await loadSale(sluice, sale.id, { reason: "drift", mendsEpoch: await epochInDatabase(stores, sale) });
  await changeUntold(sluice, sale, other);
  await relay(sluice);
  expect(await remaining(stores, sale)).toBe(5);
  expect((await ask(sluice, sale, "bert")).kind).toBe("queued");
});
