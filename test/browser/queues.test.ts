import { beforeAll, describe, expect, it } from "vitest";
import { chromiumPath, launchBrowser } from "../support/browser.js";
import { type Api, prepareSluice, reserve, type TestSale, type TestSluice } from "../support/sluice.js";
import { waitFor } from "../support/wait.js";

describe.skipIf(!chromiumPath)("the board of the queues, in a browser", () => {
  let sluice: TestSluice;
  let api: Api;
  let sale: TestSale;
  let requestId: string;

  beforeAll(async () => {
    sluice = await prepareSluice();
    api = await sluice.startApi();
    sale = await sluice.createSale(api);
    await sluice.createSale(api);
    const { data } = await reserve(api, await sluice.token("buyer", "ann"), sale);
    requestId = data?.reserve.reservation?.requestId ?? "";
  });

  it("opens with an operator's token as the password, tells that no worker runs, leads to a waiting job, and loads nothing from elsewhere", async () => {
    const browser = await launchBrowser();
    const httpCredentials = { username: "x", password: await sluice.token("operator", "olga") };
    const { context, complaints, strayRequests } = await browser.newProfile(api.url, { httpCredentials });
    const page = await context.newPage();
    const slowly = { timeout: 30_000 };

    await page.goto(`${api.url}/admin/queues`);
    const title = page.getByRole("link", { name: `A drop (${sale.id})` });
    await title.first().click(slowly);
    await page.getByRole("heading", { name: `A drop (${sale.id})` }).waitFor(slowly);
    await page.getByText("No workers").first().waitFor(slowly);
    await page.getByText(requestId).first().click(slowly);
    await waitFor(() => page.url().endsWith(requestId), { what: "the job's own page" });
    await page.reload();
    await page.getByText(`"${sale.id}"`).waitFor(slowly);

    expect(complaints).toEqual([]);
    expect(strayRequests).toEqual([]);
  }, 120_000);

  it("is refused with a buyer's token", async () => {
    const browser = await launchBrowser();
    const httpCredentials = { username: "x", password: await sluice.token("buyer", "ann") };
    const { context } = await browser.newProfile(api.url, { httpCredentials });
    const page = await context.newPage();
    const response = await page.goto(`${api.url}/admin/queues/`);
    expect([response?.status(), await page.title()]).toEqual([403, ""]);
  });
});
