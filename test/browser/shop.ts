/** A shop for the tests of the storefront: a Sluice with the page in front of it, a browser, and who goes there. */
import { fileURLToPath } from "node:url";
import { afterEach, beforeAll, expect } from "vitest";
import { buildPage } from "../../src/embedded/page.js";
import { launchBrowser, type TestBrowser } from "../support/browser.js";
import type { Profile } from "../support/chromium.js";
import { operate, type SaleMutation } from "../support/operate.js";
import {
  type Api,
  prepareSluice,
  reserve,
  type SaleOptions,
  type TestSale,
  type TestSluice,
} from "../support/sluice.js";
import { query } from "../support/sql.js";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy.js";
import { makeTempDir } from "../support/test-file.js";
import { enter, type Visitor, type VisitorOptions } from "./visitor.js";

export const SECOND = 1_000;
export const HOUR = 3_600 * SECOND;
/** For a page, and processes behind it, on a machine that has other things to do. */
export const PATIENT = { timeout: 180 * SECOND };

const root = fileURLToPath(new URL("../..", import.meta.url));
/** It is the page that is tested here: the API's deadlines leave room for a busy machine, and workers look often. */
const TUNING = {
  deadlines: { requestMs: 6 * SECOND, journalMs: 5 * SECOND, redisCommandMs: 4 * SECOND },
  sql: { statementMs: 5 * SECOND, readStatementMs: 5 * SECOND, lockMs: 4 * SECOND },
  loops: { queuesMs: SECOND / 5, expirerMs: SECOND / 5 },
};
const DESKTOP = { width: 1_280, height: 800 };
/** What Chromium itself writes to the console where the network fails or a token is refused. */
const FAILED_REQUEST = /^(Failed to load resource|WebSocket connection to)/;

export interface VisitOptions extends VisitorOptions {
  /** another way to the shop than the API's own address */
  readonly origin?: string;
  readonly viewport?: { readonly width: number; readonly height: number };
}

export interface Shop {
  readonly sluice: TestSluice;
  readonly api: Api;
  /** Where the API has the page from. */
  readonly dataDir: string;
  /** A visitor of the page with a browser profile of his own. */
  visit(path: string, options?: VisitOptions): Promise<Visitor>;
  /** Another way to the API, on which the network can fail. */
  openDetour(): Promise<{ proxy: TcpProxy; origin: string }>;
  createSale(options?: SaleOptions): Promise<TestSale>;
  /** Changes the sale's state as an operator does. */
  operate(mutation: SaleMutation, sale: TestSale): Promise<void>;
  /** Reserves as somebody who doesn't use the page. */
  reserveAs(buyerId: string, sale: TestSale, input?: { quantity?: number }): Promise<void>;
  /** Runs a worker for as long as it takes. Without one everybody stays in line. */
  withWorker(until: () => Promise<unknown>): Promise<void>;
  /** The orders in the database. */
  orders(sale: TestSale): Promise<OrderRow[]>;
  /** How many requests the database knows. */
  requestsOf(sale: TestSale): Promise<number>;
}

interface OrderRow {
  readonly requestId: string;
  readonly buyerId: string;
  readonly quantity: number;
  readonly status: string;
}

/**
 * Opens a shop for the `describe` in which it is called: it is there from the first test on. After each test everybody
 * goes, and no page may have complained, or have asked another server than its own for anything.
 */
export function openShop(): Shop {
  const visits: Profile[] = [];
  let dataDir: string;
  let sluice: TestSluice;
  let api: Api;
  let browser: TestBrowser;

  beforeAll(async () => {
    dataDir = makeTempDir("data");
    const env = {
      SLUICE_DEMO: "true",
      SLUICE_DATA_DIR: dataDir,
      SLUICE_TUNING: JSON.stringify(TUNING),
      PAYMENT_WEBHOOK_SECRET: "what the simulated provider signs with",
    };
    const startApi = async () => {
      [sluice] = await Promise.all([prepareSluice({ env }), buildPage(root, dataDir)]);
      return sluice.startApi();
    };
    [api, browser] = await Promise.all([startApi(), launchBrowser()]);
  });

  // Pages that nobody looks at any more still ask for their place in line.
  afterEach(async () => {
    const over = visits.splice(0);
    await Promise.all(over.map(({ context }) => context.close()));
    expect(over.flatMap(({ strayRequests }) => strayRequests)).toEqual([]);
    expect(over.flatMap(({ complaints }) => complaints).filter((text) => !FAILED_REQUEST.test(text))).toEqual([]);
  });

  return {
    get sluice() {
      return sluice;
    },
    get api() {
      return api;
    },
    get dataDir() {
      return dataDir;
    },
    async visit(path, { origin = api.url, viewport = DESKTOP, ...visitor } = {}) {
      // Without a graphics card every frame of an animation is drawn by the processor.
      const profile = await browser.newProfile(origin, { viewport, reducedMotion: "reduce" });
      visits.push(profile);
      return enter(profile, `${origin}${path}`, visitor);
    },
    async openDetour() {
      const proxy = await startTcpProxy(api.url);
      return { proxy, origin: `http://${proxy.host}:${proxy.port}` };
    },
    createSale: (options) => sluice.createSale(api, options),
    operate: (mutation, sale) => operate(sluice, api, mutation, sale),
    async reserveAs(buyerId, sale, input) {
      await reserve(api, await sluice.token("buyer", buyerId), sale, input);
    },
    async withWorker(until) {
      const worker = await sluice.startWorker();
      try {
        await until();
      } finally {
        worker.kill("SIGKILL");
        await worker.exited;
      }
    },
    orders: ({ id }) =>
      query(
        sluice.databaseUrl,
        `SELECT "requestId", "buyerId", quantity, status::text AS status FROM orders WHERE "saleId" = $1`,
        [id],
      ),
    async requestsOf({ id }) {
      return (await query(sluice.databaseUrl, `SELECT 1 FROM requests WHERE "saleId" = $1`, [id])).length;
    },
  };
}
