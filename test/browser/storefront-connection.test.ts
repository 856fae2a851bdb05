import { describe, expect, it } from "vitest";
import { chromiumPath } from "../support/browser.js";
import { operate } from "../support/operate.js";
import { waitFor } from "../support/wait.js";
import { openShop, PATIENT, SECOND } from "./shop.js";
import { isReserve } from "./visitor.js";

describe.skipIf(!chromiumPath)("the storefront", PATIENT, () => {
  const shop = openShop();

  describe("a reload", () => {
    it("in line keeps the place and the request, and ends with one order", async () => {
      const sale = await shop.createSale();
      await shop.reserveAs("ann", sale);
      const { page, buy, sees, stored } = await shop.visit(`/?sale=${sale.id}`);
      await buy("Item 0");
      await sees("In line: 1 ahead");
      const before = await stored();
      await page.reload();
      await sees("In line: 1 ahead");
      expect(await stored()).toEqual(before);
      await shop.withWorker(() => sees("Yours"));
      const own = (await shop.orders(sale)).filter(({ buyerId }) => buyerId === before.buyerId);
      expect(own).toEqual([expect.objectContaining({ requestId: before.intention?.requestId })]);
    });

    it("with nothing left but the token finds the reservation", async () => {
      const sale = await shop.createSale();
      const { page, buy, sees, stored } = await shop.visit(`/?sale=${sale.id}`);
      await buy("Item 0");
      await sees("In line: you are next");
      const before = await stored();
      await page.evaluate(
        `for (const key of Object.keys(localStorage)) if (key !== "sluice:buyer") localStorage.removeItem(key)`,
      );
      await page.reload();
      await sees("In line: you are next");
      expect(await stored()).toMatchObject({
        buyerId: before.buyerId,
        intention: { requestId: before.intention?.requestId },
      });
    });

    it("before the request arrived sends it, with the id that was stored first", async () => {
      const sale = await shop.createSale();
      const { page, context, buy, sees, sentIds } = await shop.visit(`/?sale=${sale.id}`);
      await context.route("**/graphql", (route) => (isReserve(route.request()) ? route.abort() : route.fallback()));
      await buy("Item 0");
      await sees("Asking for it");
      await context.unrouteAll();
      await page.reload();
      await sees("In line: you are next");
      expect(new Set(sentIds).size).toBe(1);
      expect(await shop.requestsOf(sale)).toBe(1);
    });

    it("of a page that was opened at / stays with its sale, also when it is paused", async () => {
      const sale = await shop.createSale();
      const { page, ready } = await shop.visit("/");
      await ready("Item 0");
      await shop.operate("pauseSale", sale);
      await page.reload();
      await page.locator("#phase", { hasText: "Paused" }).waitFor();
      expect(new URL(page.url()).searchParams.get("sale")).toBe(sale.id);
    });
  });

  describe("a connection", () => {
    it("that is cut shows a banner, and what was decided meanwhile arrives when it is back", async () => {
      const { proxy, origin } = await shop.openDetour();
      const sale = await shop.createSale();
      const { page, buy, sees, stored, announces } = await shop.visit(`/?sale=${sale.id}`, { origin });
      await buy("Item 0");
      await sees("In line: you are next");
      proxy.cut();
      await page.getByText("Connection lost, trying again…").waitFor();
      await announces(/Connection lost/);
      const ordered = async () => (await shop.orders(sale)).length === 1;
      await shop.withWorker(() => waitFor(ordered, { what: "the order", timeoutMs: 60 * SECOND }));
      await sees("In line: you are next");
      proxy.heal();
      await sees("Yours");
      await page.locator("#connection").waitFor({ state: "hidden" });
      await announces(/Yours/);
      expect(await shop.orders(sale)).toEqual([
        expect.objectContaining({ requestId: (await stored()).intention?.requestId }),
      ]);
    });

    it("that the browser knows to be down is told at once, and tried again at once when it is up", async () => {
      const sale = await shop.createSale();
      const { page, context, buy, sees } = await shop.visit(`/?sale=${sale.id}`);
      await buy("Item 0");
      await sees("In line: you are next");
      await context.setOffline(true);
      await page.locator("#connection").waitFor();
      await shop.reserveAs("ann", sale);
      await context.setOffline(false);
      await page.locator("#connection").waitFor({ state: "hidden" });
      await page.getByText("98 of 100 left").waitFor();
    });

    it("that is dead and says nothing is noticed, and left for a new one", async () => {
      const { proxy, origin } = await shop.openDetour();
      const sale = await shop.createSale();
      const { page, ready } = await shop.visit(`/?sale=${sale.id}`, { origin, movableTime: true });
      await ready("Item 0");
      await shop.reserveAs("ann", sale);
      await page.getByText("99 of 100 left").waitFor();
      proxy.strand();
      await shop.reserveAs("ben", sale);
      // Until the page asks whether anybody is there, and as long as it waits for the answer.
      await page.clock.fastForward(10 * SECOND);
      await page.clock.fastForward(5 * SECOND);
      await page.getByText("98 of 100 left").waitFor();
    });

    it("that a stopping server closes is no end: the page goes on with the next server", async () => {
      const first = await shop.sluice.startApi();
      const sale = await shop.sluice.createSale(first);
      const { page, buy, sees } = await shop.visit(`/?sale=${sale.id}`, { origin: first.url });
      await buy("Item 0");
      await sees("In line: you are next");
      first.kill("SIGTERM");
      await first.exited;
      await page.locator("#connection").waitFor();
      const next = await shop.sluice.startApi({ PORT: new URL(first.url).port });
      await page.locator("#connection").waitFor({ state: "hidden" });
      await operate(shop.sluice, next, "pauseSale", sale);
      await page.locator("#phase", { hasText: "Paused" }).waitFor();
      await sees("In line: you are next");
    });

    it("whose subscriptions the server ends with an error has them opened again", async () => {
      const sale = await shop.createSale();
      const visitor = await shop.visit(`/?sale=${sale.id}`);
      await visitor.ready("Item 0");
      await visitor.endSubscriptions();
      await shop.operate("pauseSale", sale);
      await visitor.page.locator("#phase", { hasText: "Paused" }).waitFor();
    });

    it("that loses all answers for a while takes no second unit", async () => {
      const { proxy, origin } = await shop.openDetour();
      const sale = await shop.createSale();
      const { buy, ready, sees, sentIds } = await shop.visit(`/?sale=${sale.id}`, { origin });
      await ready("Item 0");
      proxy.swallowReplies();
      await buy("Item 0");
      await waitFor(async () => (await shop.requestsOf(sale)) === 1, { what: "the request to be journaled" });
      await sees("Asking for it");
      proxy.heal();
      await sees("In line: you are next");
      expect(new Set(sentIds).size).toBe(1);
      await shop.withWorker(() => sees("Yours"));
      expect(await shop.orders(sale)).toHaveLength(1);
    });

    it("that loses one answer has the request sent again with the same id, which takes no second unit", async () => {
      const sale = await shop.createSale();
      const visitor = await shop.visit(`/?sale=${sale.id}`);
      await visitor.ready("Item 0");
      visitor.hold("reservationUpdates");
      await visitor.context.route("**/graphql", async (route) => {
        if (!isReserve(route.request())) return route.fallback();
        if (visitor.sentIds.length > 1) return route.fallback();
        await route.fetch();
        return route.abort();
      });
      await visitor.buy("Item 0");
      await visitor.sees("In line: you are next");
      expect(visitor.sentIds).toHaveLength(2);
      expect(new Set(visitor.sentIds).size).toBe(1);
      expect(await shop.requestsOf(sale)).toBe(1);
      await visitor.page.getByText("99 of 100 left").waitFor();
    });
  });
});
