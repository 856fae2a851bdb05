import { beforeAll, describe, expect, it } from "vitest";
import { chromiumPath, launchBrowser, type TestBrowser } from "../support/browser.js";
import type { Profile } from "../support/chromium.js";
import {
  addTab,
  openExplorer,
  openTab,
  reloadExplorer,
  reserveIn,
  resultWith,
  run,
  stop,
  storedText,
  tabTitles,
  typeHeaders,
  typeQuery,
  variablesWith,
} from "../support/graphiql.js";
import { scrapeApi } from "../support/metrics.js";
import { operate } from "../support/operate.js";
import { type Api, prepareSluice, type TestSale, type TestSluice } from "../support/sluice.js";
import { query } from "../support/sql.js";
import { waitFor } from "../support/wait.js";

const TOUR = ["Reserve", "SameAgain", "Watch", "Pay", "Operate", "SaleLive"];
const PATIENT = { timeout: 240_000 };

describe.skipIf(!chromiumPath)("the explorer in a browser", () => {
  let sluice: TestSluice;
  let browser: TestBrowser;
  let api: Api;

  beforeAll(async () => {
    sluice = await prepareSluice({
      env: { SLUICE_DEMO: "true", PAYMENT_WEBHOOK_SECRET: "what the provider signs with" },
    });
    browser = await launchBrowser();
    api = await sluice.startApi();
  }, PATIENT.timeout);

  it(
    "takes a visitor through a purchase: accepted, no second unit for a repeat, its changes as they come, and paid",
    PATIENT,
    async () => {
      const sale = await sluice.createSale(api, { initial: [0, 5] });
      const profile = await browser.newProfile(api.url);
      const page = await openExplorer(profile, api.url);
      expect(await tabTitles(page)).toEqual(TOUR);

      const requestId = requestIdIn(await reserveIn(page));
      await openTab(page, "SameAgain");
      await run(page);
      expect(requestIdIn(await resultWith(page, '"QUEUED"'))).toBe(requestId);

      await openTab(page, "Watch");
      await run(page);
      await resultWith(page, '"QUEUED"');
      const worker = await sluice.startWorker();
      const outcome = await resultWith(page, '"SUCCESS"');
      expect(outcome).toContain('"PENDING_PAYMENT"');
      expect(await openSubscriptions()).toBe(1);
      await stop(page);
      await waitFor(async () => (await openSubscriptions()) === 0, { what: "the server to hear of the stop" });

      await openTab(page, "SameAgain");
      await run(page);
      expect(requestIdIn(await resultWith(page, '"DECIDED"'))).toBe(requestId);

      await openTab(page, "Pay");
      await run(page, "Pay");
      // A line that is too long for the pane is shown as several.
      const begun = (await resultWith(page, '"payBy"')).replaceAll(/\s/g, "");
      const [, url = ""] = /"url":"([^"]+)"/.exec(begun) ?? [];
      expect((await fetch(`${api.url}${url}`, { method: "POST" })).status).toBe(200);
      await openTab(page, "Watch");
      await run(page);
      await resultWith(page, '"PAID"');
      const order = { requestId, itemId: sale.items[1]?.id, quantity: 1, status: "PAID" };
      expect(await ordersOf(sale)).toEqual([order]);
      expectInnocent(profile);
      worker.kill();
      await worker.exited;
    },
  );

  it("lets an operator pause and resume, which a second window sees at once", PATIENT, async () => {
    await sluice.createSale(api);
    const profile = await browser.newProfile(api.url);
    const watching = await openExplorer(profile, api.url);
    await openTab(watching, "SaleLive");
    await run(watching);
    await resultWith(watching, '"OPEN"');

    const operating = await openExplorer(profile, api.url);
    await openTab(operating, "Operate");
    await run(operating, "Pause");
    await resultWith(operating, '"PAUSED"');
    await resultWith(watching, '"PAUSED"');

    await reloadExplorer(operating);
    await run(operating, "Operate");
    await resultWith(operating, '"shown to buyers"');
    await run(operating, "Resume");
    await resultWith(operating, '"OPEN"');
    await resultWith(watching, '"OPEN"');
    expectInnocent(profile);
  });

  it("keeps its tabs when the page is loaded again", PATIENT, async () => {
    await sluice.createSale(api);
    const profile = await browser.newProfile(api.url);
    const page = await openExplorer(profile, api.url);
    await openTab(page, "SameAgain");
    const requestId = requestIdIn(await reserveIn(page));

    await reloadExplorer(page);
    expect(await tabTitles(page)).toEqual(TOUR);
    await variablesWith(page, requestId);
    await run(page);
    expect(requestIdIn(await resultWith(page, '"QUEUED"'))).toBe(requestId);
    expectInnocent(profile);
  });

  it("has fresh tabs after a restart with another sale, and still those that the visitor wrote", PATIENT, async () => {
    const sale = await sluice.createSale(api);
    const profile = await browser.newProfile(api.url);
    const page = await openExplorer(profile, api.url);
    await addTab(page);
    await typeQuery(page, "query Mine { serverTime");
    await waitFor(async () => (await storedText(page)).includes("Mine"), { what: "the tab to be stored" });

    await operate(sluice, api, "closeSale", sale);
    const next = await sluice.createSale(api);
    const { port } = new URL(api.url);
    await sluice.endProcesses();
    api = await sluice.startApi({ PORT: port });
    await reloadExplorer(page);

    expect(await tabTitles(page)).toEqual([...TOUR, "Mine"]);
    expect(await storedText(page)).not.toContain(sale.id);
    await run(page);
    await resultWith(page, '"serverTime"');
    await openTab(page, "Reserve");
    await variablesWith(page, next.id);
    await reserveIn(page);
    expectInnocent(profile);
  });

  it("outside of the demo has no tokens, and keeps none that the visitor puts under Headers", PATIENT, async () => {
    const plain = await sluice.startApi({ SLUICE_DEMO: "" });
    const sale = await sluice.createSale(plain);
    const profile = await browser.newProfile(plain.url);
    const page = await openExplorer(profile, plain.url);
    expect(await tabTitles(page)).toEqual(["OpenSales", "WithToken"]);
    expect(await page.content()).not.toContain("Bearer ey");
    await run(page);
    await resultWith(page, sale.id);

    const token = await sluice.token("buyer", "alice");
    await openTab(page, "WithToken");
    await typeHeaders(page, `{ "authorization": "Bearer ${token}"`);
    await run(page);
    await resultWith(page, '"edges"');
    await addTab(page);
    await waitFor(async () => (await storedText(page)).includes("<untitled>"), { what: "the tabs to be stored" });
    expect(await storedText(page)).not.toContain(token);
    expectInnocent(profile);
  });

  async function openSubscriptions(): Promise<number> {
    return (await scrapeApi(sluice, api)).value("sluice_subscriptions_open") ?? 0;
  }

  function ordersOf({ id }: TestSale): Promise<unknown[]> {
    return query(
      sluice.databaseUrl,
      'SELECT "requestId", "itemId", quantity, status::text FROM orders WHERE "saleId" = $1',
      [id],
    );
  }
});

function expectInnocent({ complaints, strayRequests }: Profile): void {
  expect({ complaints, strayRequests }).toEqual({ complaints: [], strayRequests: [] });
}

function requestIdIn(text: string): string {
  const [, requestId] = /"requestId": "([0-9a-f-]{36})"/.exec(text) ?? [];
  if (requestId === undefined) throw new Error(`there is no requestId in ${text}`);
  return requestId;
}
