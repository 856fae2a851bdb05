import { beforeAll, describe, expect, it } from "vitest";
import { createQueueBoard, type QueueBoard } from "../../src/http/queue-board.js";
import { changeSaleState } from "../../src/operations/change-sale-state.js";
import { queuePrefix } from "../../src/redis/keys.js";
import type { Resources } from "../../src/resources.js";
import { openProcess, openSale, queueMany, type Stores, startStores } from "../operations/support.js";
import { waitFor } from "../support/wait.js";

let stores: Stores;
let sluice: Resources;
beforeAll(async () => {
  stores = await startStores();
  sluice = await openProcess(stores);
});

/** How many jobs wait, by the names of the queues. */
async function look(board: QueueBoard): Promise<Record<string, number>> {
  const response = await board.get("/api/queues", "", "");
  const { queues } = (await response.json()) as { queues: { name: string; counts: { waiting: number } }[] };
  return Object.fromEntries(queues.map(({ name, counts }) => [name, counts.waiting]));
}

describe("the board", () => {
  it("holds on to the queues of the sales that are served, and to no others", async () => {
    const board = createQueueBoard(sluice);
    const listeners = () =>
      ["error", "close", "ready"].map((event) => sluice.redis.client.listenerCount(event)).reduce((a, b) => a + b);
    expect(await look(board)).toEqual({});
    const withNone = listeners();
    const sales = [await openSale(sluice), await openSale(sluice)];
    await waitFor(async () => Object.keys(await look(board)).length === 2, { what: "both queues" });
    await look(board);
    expect(listeners()).toBe(withNone + 2 * 3);

    for (const { id } of sales) await changeSaleState(sluice, { saleId: id, action: "close", actor: "olga" });
    await waitFor(async () => Object.keys(await look(board)).length === 0, { what: "no queue" });
    await waitFor(() => listeners() === withNone, { what: "the queues to be let go" });
  });

  it("writes nothing: looking leaves a queue's keys as they were", async () => {
    const sale = await openSale(sluice);
    await queueMany(sluice, sale, 2);
    const keys = async () => (await stores.client.keys(`${queuePrefix(sale.id)}:*`)).sort();
    await stores.client.del(`${queuePrefix(sale.id)}:orders:meta`);
    const before = await keys();
    expect(await look(createQueueBoard(sluice))).toEqual({ [`A drop (${sale.id}) orders`]: 2 });
    expect(await keys()).toEqual(before);
  });

  it("that was first asked for while Redis was away, or lost it, comes by itself when it is back", async () => {
    const before = createQueueBoard(sluice);
    const seen = await look(before);
    const meanwhile = createQueueBoard(sluice);
    await stores.redis.kill();
    for (const board of [before, meanwhile]) {
      await expect(look(board)).rejects.toMatchObject({ code: "SERVICE_UNAVAILABLE" });
      expect((await board.get("/", "", "")).status).toBe(200);
    }
    await stores.redis.restart();
    await sluice.redis.whenUsable(20_000);
    for (const board of [before, meanwhile]) expect(await look(board)).toEqual(seen);
  });
});
