import fc from "fast-check";
import { beforeAll, expect, it } from "vitest";
import { HOUR, SECOND } from "../../src/domain/time.js";
import { changeSaleState } from "../../src/operations/change-sale-state.js";
import { checkSale } from "../../src/operations/check-sale.js";
import { createSale } from "../../src/operations/create-sale.js";
import { saleKeys } from "../../src/redis/keys.js";
import type { Resources } from "../../src/resources.js";
import { seededRandom } from "../support/seed.js";
import { startTcpProxy } from "../support/tcp-proxy.js";
import { anyStory, type Command, type Played, play } from "./order-commands.js";
import { createModel } from "./order-model.js";
import { PRICE } from "./order-support.js";
import { openProcess, type Stores, startStores } from "./support.js";

const RUNS = 80;
const [SHORTEST, LONGEST] = [8, 21];
const MAX_PER_BUYER = 3;

let stores: Stores;
let sluice: Resources;
let cutOff: Resources;

beforeAll(async () => {
  stores = await startStores();
  const proxy = await startTcpProxy(stores.redis.url);
  [sluice, cutOff] = await Promise.all([
    openProcess(stores),
    openProcess(stores, { redisUrl: proxy.url(stores.redis.url) }),
  ]);
  proxy.cut();
});

/** A sale of its own, open and loaded, and its model. */
async function begin(initial: readonly number[]): Promise<Played> {
  const { id: saleId, items } = await createSale(
    sluice,
    {
      title: "A drop",
      opensAt: new Date(Date.now() - HOUR),
      closesAt: new Date(Date.now() + HOUR),
      maxPerBuyer: MAX_PER_BUYER,
      paymentWindowSeconds: 3_600,
      items: initial.map((units, at) => ({
        sku: `SKU-${at}`,
        title: "A shirt",
        priceMinor: PRICE,
        currency: "EUR",
        initial: units,
      })),
    },
    "olga",
  );
  await changeSaleState(sluice, { saleId, action: "open", actor: "olga" });
  const model = createModel(initial, MAX_PER_BUYER, PRICE);
  return { stores, sluice, cutOff, saleId, itemIds: items.map(({ id }) => id), priceMinor: PRICE, model };
}

/** What the two stores hold of the sale, in the model's words. */
async function readStores({ saleId, itemIds, model }: Played) {
  const { stock, holders } = saleKeys(saleId);
  const ids = model.requests.map(({ requestId }) => requestId);
  const inRedis = stores.client.pipeline().hgetall(stock).hgetall(holders);
  for (const requestId of ids) inRedis.hget(`sluice:{${saleId}}:r:${requestId}`, "stage");
  const [replies, items, orders, payments, untold] = await Promise.all([
    inRedis.exec(),
    sluice.reads.saleItem.findMany({ where: { saleId }, orderBy: { position: "asc" } }),
    sluice.reads.order.findMany({ where: { saleId } }),
    sluice.reads.payment.findMany({ where: { saleId } }),
    countUntold(saleId),
  ]);
  const [remaining, held, ...stages] = (replies ?? []).map(([, value]) => value) as [
    Record<string, string>,
    Record<string, string>,
    ...string[],
  ];
  const { ".": _, ...buyers } = held;
  const orderOf = new Map(orders.map((order) => [order.requestId, order]));
  return {
    items: items.map(({ id, initial, available, locked, sold, refundPending }) => {
      return { initial, available, locked, sold, refundPending, remaining: Number(remaining[id]) };
    }),
    requests: Object.fromEntries(
      ids.map((requestId, at) => {
        const { status = null, paymentRef = null } = orderOf.get(requestId) ?? {};
        return [requestId, { status, paymentRef, inRedis: stages[at] }];
      }),
    ),
    holders: buyers,
    payments: Object.fromEntries(
      payments.map(({ paymentRef, outcome, refundDueAt, refundRef }) => {
        return [paymentRef, { outcome, due: refundDueAt !== null, refundRef }];
      }),
    ),
    untold,
    itemIds,
  };
}

/** Events that no relay has carried and no load has taken in: those of an older epoch are only waiting to be marked. */
async function countUntold(saleId: string): Promise<number> {
  const [row] = await stores.sql<{ count: number }>(
    `SELECT count(*)::int AS count FROM request_events e JOIN sales s ON s.id = e."saleId"
     WHERE s.id = $1 AND e."appliedAt" IS NULL AND e.epoch >= s.epoch`,
    [saleId],
  );
  return row?.count ?? -1;
}

/** How often each answer was given, to see that the commands reach everything. */
const answers = new Map<string, number>();

async function playAll(initial: readonly number[], commands: readonly Command[]): Promise<void> {
  const played = await begin(initial);
  const end: Command[] = [{ do: "write", told: true }, { do: "relay" }, { do: "expire", told: true }];
  for (const command of [...commands, ...end]) {
    const { expected, actual } = await play(played, command);
    expect(actual, command.do).toBe(expected);
    // QUEUED is said before Redis has heard of it.
    await sluice.journal.drained();
    expect(await readStores(played), command.do).toEqual({ ...played.model.view(), itemIds: played.itemIds });
    const answer = `${command.do} ${command.do === "expire" ? Math.sign(Number(actual)) : actual}`;
    answers.set(answer, (answers.get(answer) ?? 0) + 1);
  }
  expect(await checkSale(sluice, played.saleId, 0)).toMatchObject({ findings: [], uncompared: null });
}

it(`after any of ${RUNS} stories the stores hold what a small model holds, at each of its steps`, async () => {
  const { seed } = seededRandom("order properties");
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 2, max: 9 }), { minLength: 1, maxLength: 2 }),
      anyStory(SHORTEST, LONGEST),
      playAll,
    ),
    // Unbiased: small numbers would have everything happen to the first request.
    { seed, numRuns: RUNS, unbiased: true, interruptAfterTimeLimit: 15 * SECOND },
  );
  console.log(
    [...answers]
      .map(([answer, count]) => `${answer}: ${count}`)
      .sort()
      .join(", "),
  );
});
