import { describe, expect, it } from "vitest";
import { chromiumPath } from "../support/browser.js";
import { query } from "../support/sql.js";
import { waitFor } from "../support/wait.js";
import { openShop, PATIENT } from "./shop.js";

describe.skipIf(!chromiumPath)("the storefront", PATIENT, () => {
  const shop = openShop();

  describe("buying", () => {
    it("ends with an order in the database, and only then says yours", async () => {
      const sale = await shop.createSale();
      const visitor = await shop.visit("/");
      await visitor.buy("Item 0");
      await visitor.sees("In line: you are next");
      // Said a moment after it is shown: a worker that is quick would have overtaken it.
      await visitor.announces(/In line: you are next\. Held for you\./);
      expect(await shop.orders(sale)).toEqual([]);
      await shop.withWorker(() => visitor.sees("Yours"));
      const [order] = await shop.orders(sale);
      expect(order).toMatchObject({ buyerId: (await visitor.stored()).buyerId, quantity: 1 });
      await visitor.shows(`${sale.id}.${order?.requestId}`);
      await visitor.shows("€25.00");
      expect(await visitor.page.locator("dl").textContent()).toMatch(/Pay by\d\d:\d\dTime left1[45]:\d\d/);
      expect(visitor).toMatchObject({ complaints: [], strayRequests: [] });
      // Changes of state, each once: no seconds of a countdown and no stock.
      await visitor.announces(/Yours/);
      const said = (await visitor.announced()).join(" ");
      expect(said).toMatch(
        /^(Asking for it\. Nothing is yours yet\. )?In line: you are next\. Held for you\. .* Yours\. Pay for it to keep it\.$/,
      );
    });

    it("works with the keyboard alone: focus is seen, and goes where the answer is", async () => {
      const sale = await shop.createSale();
      const { page, sees, ready, focused } = await shop.visit(`/?sale=${sale.id}`);
      await ready("Item 0");
      await page.keyboard.press("Tab");
      expect(await focused()).toMatchObject({ text: "Buy Item 0", outlined: true });
      await page.keyboard.press("Enter");
      await sees("In line: you are next");
      expect(await focused()).toMatchObject({ text: "In line: you are next" });
      await page.keyboard.press("Tab");
      expect(await focused()).toMatchObject({ text: "Buy Item 0", outlined: true });
      await page.keyboard.press("Enter");
      await page.keyboard.press("Tab");
      expect(await focused()).toMatchObject({ text: "Open the explorer", outlined: true });
      expect(await shop.requestsOf(sale)).toBe(1);
    });

    it("tells how many are ahead", async () => {
      const sale = await shop.createSale();
      await Promise.all(["ann", "ben", "cem"].map((name) => shop.reserveAs(name, sale)));
      const visitor = await shop.visit(`/?sale=${sale.id}`);
      await visitor.buy("Item 0");
      await visitor.sees("In line: 3 ahead");
      await visitor.announces(/In line: 3 ahead\. Held for you/);
    });

    it("of the last unit goes to one of two, the other is told sold out, and a second try is a new request", async () => {
      const sale = await shop.createSale({ initial: [1] });
      const comes = () => shop.visit(`/?sale=${sale.id}`);
      const [early, late] = await Promise.all([comes(), comes()]);
      await late.ready("Item 0");
      late.hold("saleUpdates");
      await early.buy("Item 0");
      await early.sees("In line: you are next");

      await late.buy("Item 0");
      await late.sees("Sold out");
      await late.announces(/Sold out/);
      await late.buy("Item 0");
      await waitFor(() => late.sentIds.length === 2, { what: "a second request" });
      expect(new Set(late.sentIds).size).toBe(2);
      expect(await shop.requestsOf(sale)).toBe(1);
    });

    it("isn't offered for what was sold out before", async () => {
      const sale = await shop.createSale({ initial: [1, 5] });
      await shop.reserveAs("ann", sale);
      const { page, ready } = await shop.visit(`/?sale=${sale.id}`);
      await ready("Item 1");
      const button = page.getByRole("button", { name: "Sold out Item 0" });
      expect(await button.getAttribute("aria-disabled")).toBe("true");
      await button.dispatchEvent("click");
      expect(await page.locator("#purchase").isHidden()).toBe(true);
    });

    it("that the database has no stock for ends as sold out, with the reason", async () => {
      const sale = await shop.createSale({ initial: [5] });
      const visitor = await shop.visit(`/?sale=${sale.id}`);
      await visitor.buy("Item 0");
      await visitor.sees("In line: you are next");
      await query(shop.sluice.databaseUrl, `UPDATE sale_items SET initial = 0, available = 0 WHERE "saleId" = $1`, [
        sale.id,
      ]);
      await shop.withWorker(() => visitor.sees("Sold out"));
      await visitor.shows("The last units were gone before your order could be written.");
      expect(await shop.orders(sale)).toEqual([]);
    });

    it("in two tabs is one purchase, shown in both", async () => {
      const sale = await shop.createSale();
      const first = await shop.visit(`/?sale=${sale.id}`);
      await first.ready("Item 0");
      const second = await first.openTab();
      await second.buy("Item 0");
      await second.sees("In line: you are next");
      await first.sees("In line: you are next");
      expect(await shop.requestsOf(sale)).toBe(1);
    });

    it("as somebody else is another purchase", async () => {
      const sale = await shop.createSale();
      const { page, buy, sees, ready, stored, focused, complaints } = await shop.visit(`/?sale=${sale.id}`);
      await buy("Item 0");
      await sees("In line: you are next");
      const before = await stored();
      await page.getByRole("button", { name: "Be somebody else" }).click();
      await ready("Item 0");
      expect((await stored()).buyerId).not.toBe(before.buyerId);
      expect(await focused()).toMatchObject({ text: "Be somebody else" });
      await buy("Item 0");
      await sees("In line: 1 ahead");
      expect(await shop.requestsOf(sale)).toBe(2);
      expect(complaints).toEqual([]);
    });
  });
});
