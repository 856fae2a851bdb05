import { beforeEach, describe, expect, it } from "vitest";
import type { Resources } from "../../src/resources.js";
import { openProcess, openSale, order, type Stores, startStores, type TestSale } from "../operations/support.js";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy.js";
import { waitFor } from "../support/wait.js";
import { cancel, come, counted, isShut, STAYS, shut, untilOpen, WAIT_MS } from "./gate-support.js";

let stores: Stores;
let sluice: Resources;
let sale: TestSale;
let requestId: string;
beforeEach(async () => {
  stores = await startStores();
  sluice = await openProcess(stores);
  sale = await openSale(sluice, { initial: 1 });
  requestId = await order(sluice, sale, "anna");
});

/** A process whose gates stay shut for ten minutes if nothing opens them, and which reaches Redis through a proxy. */
async function openBehindProxy(): Promise<{ process: Resources; proxy: TcpProxy }> {
  const proxy = await startTcpProxy(stores.redis.url);
  const soldOut = { ...STAYS, heardWithinMs: 500 };
  return { process: await openProcess(stores, { redisUrl: proxy.url(stores.redis.url), tuning: { soldOut } }), proxy };
}

describe("a gate that is shut", () => {
  it("opens while Redis is frozen: buyers hear that nothing can be decided, and afterwards that it is sold out", async () => {
    const { process } = await openBehindProxy();
    await shut(process, sale);
    stores.redis.freeze();
    try {
      await untilOpen(process, sale);
      await expect(come(process, sale, "ben")).rejects.toMatchObject({ code: "SERVICE_UNAVAILABLE" });
      expect((await counted(process, "opened_total")).silence).toBe(1);
    } finally {
      stores.redis.thaw();
    }
    await waitFor(async () => (await come(process, sale, "ben")).kind === "sold_out", {
      what: "Redis to be met again",
      timeoutMs: WAIT_MS,
    });
    await shut(process, sale);
  });

  it("opens when events may have been missed, and is shut by nothing but a newer reply", async () => {
    const { process } = await openBehindProxy();
    await shut(process, sale);
    await stores.client.client("KILL", "TYPE", "pubsub");
    // Told once it listens again: the echo is heard then, which is proof of what comes from now on only.
    await waitFor(async () => (await counted(process, "opened_total")).event === 1, {
      what: "the listener to be back",
      timeoutMs: WAIT_MS,
    });
    expect(isShut(process, sale)).toBe(false);
    await shut(process, sale);
  });

  it("opens where the network swallows everything, and lets a unit go that came back meanwhile", async () => {
    const { process, proxy } = await openBehindProxy();
    await shut(process, sale);
    proxy.blackhole();
    await cancel(sluice, sale, "anna", requestId);
    await untilOpen(process, sale);
    proxy.heal();
    await waitFor(async () => (await come(process, sale, "ben")).kind === "queued", {
      what: "the unit to be sold",
      timeoutMs: WAIT_MS,
    });
  });

  it("opens where the connections of before lead nowhere any more, and new ones are fine", async () => {
    const { process, proxy } = await openBehindProxy();
    await shut(process, sale);
    proxy.strand();
    await untilOpen(process, sale);
    await cancel(sluice, sale, "anna", requestId);
    await waitFor(async () => (await come(process, sale, "ben")).kind === "queued", {
      what: "the unit to be sold",
      timeoutMs: WAIT_MS,
    });
  });

  it("opens where Redis was restarted: another server is another emptying", async () => {
    const { process } = await openBehindProxy();
    await shut(process, sale);
    await stores.redis.restart();
    await waitFor(async () => (await come(process, sale, "ben")).kind === "sold_out", {
      what: "the sale to be loaded on the new server",
      timeoutMs: WAIT_MS,
    });
    const { read } = await counted(process, "filters_total");
    await shut(process, sale);
    expect((await counted(process, "filters_total")).read).toBeGreaterThanOrEqual(Math.max(2, read));
    expect((await come(process, sale, "anna", { requestId })).kind).toBe("decided");
  });
});
