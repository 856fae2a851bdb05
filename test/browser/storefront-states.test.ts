import { randomUUID } from "node:crypto";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import axe from "axe-core";
import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { signToken } from "../../src/admission/sign-token.js";
import { chromiumPath } from "../support/browser.js";
import { waitFor } from "../support/wait.js";
import { HOUR, openShop, PATIENT, SECOND } from "./shop.js";

describe.skipIf(!chromiumPath)("the storefront", PATIENT, () => {
  const shop = openShop();

  it("weighs less than 60 KB", () => {
    const folder = join(shop.dataDir, "page");
    const bytes = readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
    expect(bytes).toBeLessThan(60_000);
  });

  describe("time and state of the sale", () => {
    it("are the server's: with a clock that is wrong by hours the countdown is right, and the button comes alive at opensAt", async () => {
      const opensAt = new Date(Date.now() + 12 * SECOND);
      const sale = await shop.createSale({ opensAt });
      const { page, ready, buy, sees } = await shop.visit(`/?sale=${sale.id}`, { clockOffMs: HOUR });
      const shownLeftMs = async () => {
        const [minutes = 0, seconds = 0] = ((await page.locator("#countdown-time").textContent()) ?? "")
          .split(":")
          .map(Number);
        return (minutes * 60 + seconds) * SECOND;
      };
      await page.getByText("Opens in").waitFor();
      expect(Math.abs((await shownLeftMs()) - (opensAt.getTime() - Date.now()))).toBeLessThan(2 * SECOND);
      const button = page.getByRole("button", { name: "Buy Item 0" });
      expect(await button.getAttribute("aria-disabled")).toBe("true");
      // The clock is set while the page is open.
      const leftMs = await shownLeftMs();
      await page.evaluate("globalThis.clockOffMs = -24 * 3600000");
      await waitFor(async () => (await shownLeftMs()) <= leftMs - 3 * SECOND, { what: "three seconds to pass" });
      expect(Math.abs((await shownLeftMs()) - (opensAt.getTime() - Date.now()))).toBeLessThan(2 * SECOND);
      await ready("Item 0");
      expect(Date.now()).toBeGreaterThanOrEqual(opensAt.getTime());
      expect(Date.now()).toBeLessThan(opensAt.getTime() + 5 * SECOND);
      await buy("Item 0");
      await sees("In line: you are next");
    });

    it("paused is shown at once, with the reason, and so is going on", async () => {
      const sale = await shop.createSale();
      const { page, ready, announces } = await shop.visit(`/?sale=${sale.id}`);
      await ready("Item 0");
      await shop.operate("pauseSale", sale);
      await page.getByText("The seller has paused this sale: a test.").first().waitFor();
      expect(await page.getByRole("button", { name: "Buy Item 0" }).getAttribute("aria-disabled")).toBe("true");
      await announces(/The sale: Paused/);
      await shop.operate("resumeSale", sale);
      await ready("Item 0");
    });

    it("paused before the page heard of it is answered in a plain sentence, and the next try is a new request", async () => {
      const sale = await shop.createSale();
      const visitor = await shop.visit(`/?sale=${sale.id}`);
      await visitor.ready("Item 0");
      visitor.hold("saleUpdates");
      await shop.operate("pauseSale", sale);
      await visitor.buy("Item 0");
      await visitor.sees("The sale is paused");
      await shop.operate("resumeSale", sale);
      await visitor.buy("Item 0");
      await visitor.sees(/In line/);
      expect(new Set(visitor.sentIds).size).toBe(2);
    });

    it("stock is the server's, and moves by itself", async () => {
      const sale = await shop.createSale();
      const { page } = await shop.visit(`/?sale=${sale.id}`);
      await page.getByText("100 of 100 left").waitFor();
      await shop.reserveAs("ann", sale, { quantity: 2 });
      await page.getByText("98 of 100 left").waitFor();
    });

    it("that has ended can't be bought in, and leads to the present one", async () => {
      const sale = await shop.createSale();
      const { page, ready } = await shop.visit(`/?sale=${sale.id}`);
      await ready("Item 0");
      await shop.operate("closeSale", sale);
      await page.locator("#phase", { hasText: "Ended" }).waitFor();
      expect(await page.getByRole("link", { name: "See what is on sale now" }).getAttribute("href")).toBe("/");
      expect(await page.getByRole("button", { name: "Buy Item 0" }).getAttribute("aria-disabled")).toBe("true");
    });
  });

  describe("a visitor's token", () => {
    it("that has expired is renewed: he stays who he was, with what he has", async () => {
      const sale = await shop.createSale();
      const buyerId = `visitor-${randomUUID()}`;
      await shop.reserveAs(buyerId, sale);
      const expired = await shop.sluice.token("buyer", buyerId, -60);
      const { sees, stored } = await shop.visit(`/?sale=${sale.id}`, { buyer: { buyerId, token: expired } });
      await sees("In line: you are next");
      expect((await stored()).buyerId).toBe(buyerId);
    });

    it("that expires while the page is open is renewed too", async () => {
      const sale = await shop.createSale();
      const buyerId = `visitor-${randomUUID()}`;
      const token = await shop.sluice.token("buyer", buyerId, 5);
      const { page, buy, sees, stored } = await shop.visit(`/?sale=${sale.id}`, { buyer: { buyerId, token } });
      await buy("Item 0");
      await sees("In line: you are next");
      await waitFor(async () => (await stored()).token !== token, { what: "another token", timeoutMs: 30_000 });
      expect((await stored()).buyerId).toBe(buyerId);
      await page.locator("#connection").waitFor({ state: "hidden" });
      await shop.operate("pauseSale", sale);
      await page.locator("#phase", { hasText: "Paused" }).waitFor();
      await sees("In line: you are next");
    });

    it("that isn't ours can't be renewed: he is somebody else now, and is told so", async () => {
      const sale = await shop.createSale();
      const buyerId = "visitor-from-elsewhere";
      const secret = "the secret of another Sluice, with 32 characters";
      const token = await signToken({ secret, issuer: "sluice", audience: "sluice", role: "buyer", userId: buyerId });
      const { buy, sees, announces, stored } = await shop.visit(`/?sale=${sale.id}`, { buyer: { buyerId, token } });
      await sees("You are a new visitor now");
      await announces(/You are a new visitor now/);
      expect((await stored()).buyerId).not.toBe(buyerId);
      await buy("Item 0");
      await sees("In line: you are next");
    });
  });

  describe("in every state", () => {
    it("axe has nothing to say against it, light or dark, and nothing is wider than a phone", async () => {
      const { proxy, origin } = await shop.openDetour();
      const options = { origin, viewport: { width: 360, height: 740 } };
      const check = async (page: Page, state: string) => {
        expect(await violations(page, "light"), state).toEqual([]);
        expect(await violations(page, "dark"), state).toEqual([]);
        expect(await page.evaluate("document.documentElement.scrollWidth - innerWidth"), state).toBeLessThanOrEqual(0);
      };

      const nowhere = await shop.visit("/?sale=nowhere", options);
      await nowhere.page.getByRole("heading", { name: "There is no such sale" }).waitFor();
      await check(nowhere.page, "no sale");

      const soon = await shop.createSale({
        opensAt: new Date(Date.now() + 30 * HOUR),
        closesAt: new Date(Date.now() + 60 * HOUR),
      });
      const early = await shop.visit(`/?sale=${soon.id}`, options);
      await early.page.getByText("Opens in").waitFor();
      await check(early.page, "before");

      const sale = await shop.createSale({ initial: [1, 1, 5_000] });
      const { page, ready, buy, sees, hold } = await shop.visit(`/?sale=${sale.id}`, options);
      await ready("Item 0");
      await check(page, "open");
      hold("saleUpdates");
      await shop.reserveAs("ann", sale);
      await buy("Item 0");
      await sees("Sold out");
      await check(page, "refused");
      hold(null);
      proxy.swallowReplies();
      await buy("Item 1");
      await sees("Asking for it");
      await check(page, "asking");
      proxy.heal();
      await sees(/In line/);
      await check(page, "in line");
      proxy.cut();
      await page.locator("#connection").waitFor();
      await check(page, "connection lost");
      proxy.heal();
      await shop.withWorker(() => sees("Yours"));
      await check(page, "yours");
      await page.getByRole("button", { name: "Give back" }).click();
      await sees("Give it back?");
      await check(page, "give it back?");
      await page.getByRole("button", { name: "Yes, give it back" }).click();
      await sees("Given back");
      await check(page, "given back");
      await shop.operate("pauseSale", sale);
      await page.locator("#phase", { hasText: "Paused" }).waitFor();
      await check(page, "paused");
      await shop.operate("closeSale", sale);
      await page.locator("#phase", { hasText: "Ended" }).waitFor();
      await check(page, "ended");
    });

    it("text of twice the size still fits", async () => {
      const sale = await shop.createSale();
      const { page, buy, sees } = await shop.visit(`/?sale=${sale.id}`, { viewport: { width: 720, height: 740 } });
      await page.evaluate(`document.documentElement.style.fontSize = "200%"`);
      await buy("Item 0");
      await sees("In line: you are next");
      expect(await page.evaluate("document.documentElement.scrollWidth - innerWidth")).toBeLessThanOrEqual(0);
    });
  });
});

async function violations(page: Page, colorScheme: "light" | "dark"): Promise<unknown[]> {
  await page.emulateMedia({ colorScheme });
  if (await page.evaluate("!globalThis.axe")) await page.evaluate(axe.source);
  const found = await page.evaluate<{ id: string; nodes: { html: string; failureSummary: string }[] }[]>(
    "axe.run().then(({ violations }) => violations)",
  );
  return found.map(({ id, nodes }) => ({ id, nodes: nodes.map(({ html, failureSummary }) => [html, failureSummary]) }));
}
