import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { chromiumPath } from "../support/browser.js";
import type { NodeProcess } from "../support/processes.js";
import { query } from "../support/sql.js";
import { openShop, PATIENT } from "./shop.js";

describe.skipIf(!chromiumPath)("the storefront", PATIENT, () => {
  const shop = openShop();

  describe("an order", () => {
    let worker: NodeProcess;
    beforeAll(async () => {
      worker = await shop.sluice.startWorker();
    });
    afterAll(async () => {
      worker.kill("SIGKILL");
      await worker.exited;
    });

    it("is paid once, though the first answer is lost and nobody tells, and is paid after a reload too", async () => {
      const sale = await shop.createSale();
      const { page, context, buy, sees, shows, announces, focused, hold } = await shop.visit(`/?sale=${sale.id}`);
      await buy("Item 0");
      await sees("Yours");
      hold("reservationUpdates");
      let letPass = () => {};
      const passing = new Promise<void>((resolve) => {
        letPass = resolve;
      });
      let payments = 0;
      await context.route("**/demo/pay?*", async (route) => {
        payments += 1;
        await route.fetch();
        return route.abort();
      });
      await context.route("**/graphql", async (route) => {
        if (payments > 0 && route.request().postData()?.includes("RequestPayment")) await passing;
        return route.fallback();
      });
      // With the keyboard alone: from where the answer is to the button after it.
      await page.locator("#purchase-title").focus();
      await page.keyboard.press("Tab");
      expect(await focused()).toMatchObject({ text: "Pay", outlined: true });
      await page.keyboard.press("Enter");
      await shows("The shop can't be reached. It is tried again by itself, and counts only once.");
      expect(await focused()).toMatchObject({ text: "Paying" });
      expect(await page.locator("#purchase-actions").isHidden()).toBe(true);
      letPass();
      await sees("Paid. Thank you");
      await announces(/Paid\. Thank you/);
      expect(payments).toBe(1);
      expect(await shop.orders(sale)).toEqual([expect.objectContaining({ status: "PAID" })]);
      const recorded = `SELECT outcome::text AS outcome FROM payments WHERE "saleId" = $1`;
      expect(await query(shop.sluice.databaseUrl, recorded, [sale.id])).toEqual([{ outcome: "PAID" }]);
      await page.reload();
      await sees("Paid. Thank you");
    });

    it("is given back by who means it, and can be bought again, also after a reload", async () => {
      const sale = await shop.createSale({ initial: [1] });
      const { page, buy, sees, sentIds, announces } = await shop.visit(`/?sale=${sale.id}`);
      const press = (name: string) => page.getByRole("button", { name, exact: true }).click();
      await buy("Item 0");
      await sees("Yours");
      await press("Give back");
      await sees("Give it back?");
      await press("Keep it");
      await sees("Yours");
      await press("Give back");
      await press("Yes, give it back");
      await sees("Given back");
      await announces(/Given back\. You cancelled this order\./);
      await page.reload();
      await sees("Given back");
      await press("Buy again");
      await sees("Yours");
      expect(new Set(sentIds).size).toBe(2);
      expect((await shop.orders(sale)).map(({ status }) => status).sort()).toEqual(["CANCELLED", "PENDING_PAYMENT"]);
    });

    it("that is not paid in time is gone, and its unit is there to be bought again", async () => {
      const sale = await shop.createSale({ initial: [1], paymentWindowSeconds: 3 });
      const { page, buy, sees, shows } = await shop.visit(`/?sale=${sale.id}`);
      await buy("Item 0");
      await sees("Yours");
      await sees("Not paid in time");
      await shows("The order was not paid in time. You may buy it again.");
      await page.getByRole("button", { name: "Buy again" }).click();
      await sees("Yours");
      expect((await shop.orders(sale)).map(({ status }) => status).sort()).toEqual(["EXPIRED", "PENDING_PAYMENT"]);
    });
  });
});
