/** How a visitor of the storefront acts, and what he sees and hears there. */
import type { BrowserContext, Page, Request } from "playwright-core";
import type { Profile } from "../support/chromium.js";
import { waitFor } from "../support/wait.js";

const PATIENCE_MS = 60_000;

/** What is particular about a visitor. */
export interface VisitorOptions {
  /** what he has stored of an earlier visit */
  readonly buyer?: { readonly buyerId: string; readonly token: string };
  /** how wrong his own clock is */
  readonly clockOffMs?: number;
  /** whether the page's time is moved on by the test, with `page.clock`; it passes by itself too */
  readonly movableTime?: boolean;
}

export type Visitor = Awaited<ReturnType<typeof enter>>;

/** Opens the storefront at `url` in a profile that has opened nothing yet. */
export async function enter(profile: Profile, url: string, { buyer, clockOffMs, movableTime }: VisitorOptions) {
  const { context } = profile;
  context.setDefaultTimeout(PATIENCE_MS);
  const subscriptions = await interceptSubscriptions(context);
  if (movableTime) await context.clock.install();
  await context.addInitScript(LISTEN);
  if (buyer) {
    const stored = JSON.stringify(JSON.stringify(buyer));
    // A new tab begins with about:blank, which has no storage.
    await context.addInitScript(`if (location.protocol !== "about:") localStorage["sluice:buyer"] ??= ${stored}`);
  }
  if (clockOffMs !== undefined) await context.addInitScript(WRONG_CLOCK, clockOffMs);

  const sentIds: string[] = [];
  context.on("request", (request) => {
    if (isReserve(request)) sentIds.push(request.postDataJSON().variables.input.requestId);
  });
  const openTab = async () => {
    const page = await context.newPage();
    await page.goto(url);
    return { page, ...handsAndEyes(page) };
  };
  return { ...profile, ...subscriptions, ...(await openTab()), openTab, sentIds };
}

/** What can be done to what the server says over the WebSocket. */
async function interceptSubscriptions(context: BrowserContext) {
  let held: string | null = null;
  let opened: string[] = [];
  let tell = (_message: object) => {};
  await context.routeWebSocket(/\/graphql$/, (socket) => {
    const server = socket.connectToServer();
    opened = [];
    tell = (message) => socket.send(JSON.stringify(message));
    socket.onMessage((message) => {
      const { type, id } = JSON.parse(String(message));
      if (type === "subscribe") opened.push(id);
      server.send(message);
    });
    server.onMessage((message) => {
      if (held === null || !String(message).includes(held)) socket.send(message);
    });
  });
  return {
    /** As the server does where it must: the reason in a last value, then the end. */
    endSubscriptions: async () => {
      await waitFor(() => opened.length > 0, { what: "a subscription" });
      const errors = [{ message: "Subscribe again.", extensions: { code: "SERVICE_UNAVAILABLE" } }];
      for (const id of opened.splice(0)) {
        tell({ id, type: "next", payload: { errors } });
        tell({ id, type: "complete" });
      }
    },
    /** What this subscription says gets lost from now on. */
    hold: (subscription: "saleUpdates" | "reservationUpdates" | null) => {
      held = subscription;
    },
  };
}

function handsAndEyes(page: Page) {
  const button = (item: string) => page.locator(`button[aria-disabled="false"]`, { hasText: `Buy ${item}` });
  const announced = () => page.evaluate<string[]>("announced");
  return {
    ready: (item: string) => button(item).waitFor(),
    buy: (item: string) => button(item).click(),
    sees: (title: string | RegExp) => sees(page, title),
    shows: (text: string) => page.locator("#purchase").getByText(text).waitFor(),
    announced,
    announces: async (text: RegExp) => {
      const isSaid = async () => (await announced()).some((said) => text.test(said));
      await waitFor(isSaid, { what: `a screen reader to hear ${text}` });
    },
    stored: () => storedIn(page),
    focused: () => focusIn(page),
  };
}

/** Waits for the purchase to have this title. */
async function sees(page: Page, title: string | RegExp): Promise<void> {
  try {
    await page.getByRole("heading", { level: 2, name: title, exact: true }).waitFor();
  } catch (error) {
    throw new Error(`instead of ${title} the page says: ${await page.locator("main").textContent()}`, { cause: error });
  }
}

async function storedIn(page: Page): Promise<{ buyerId: string; token: string; intention?: { requestId: string } }> {
  const stored = await page.evaluate<Record<string, string>>("({ ...localStorage })");
  const { buyerId, token } = JSON.parse(stored["sluice:buyer"] ?? "{}");
  const key = Object.keys(stored).find((name) => name.startsWith("sluice:intention:") && name.endsWith(`:${buyerId}`));
  return { buyerId, token, ...(key && { intention: JSON.parse(stored[key] ?? "null") }) };
}

/** Where the focus is, and whether that can be seen. */
async function focusIn(page: Page): Promise<{ text: string; outlined: boolean }> {
  const [text, style, width] = await page.evaluate<[string, string, string]>(`(() => {
    const { outlineStyle, outlineWidth } = getComputedStyle(document.activeElement);
    return [document.activeElement.textContent, outlineStyle, outlineWidth];
  })()`);
  return { text: text.trim(), outlined: style !== "none" && Number.parseFloat(width) >= 2 };
}

/** Whether this is a request for a reservation. */
export function isReserve(request: Request): boolean {
  return request.postData()?.includes("mutation Reserve") ?? false;
}

/** Runs in the page: keeps all that a screen reader is told. */
const LISTEN = `
  globalThis.announced = [];
  addEventListener("DOMContentLoaded", () => {
    const status = document.getElementById("status");
    const listen = () => announced.push(status.textContent);
    if (status) new MutationObserver(listen).observe(status, { childList: true, characterData: true, subtree: true });
  });
`;

/** Runs in the page: a clock that is off by so much, until told otherwise. */
const WRONG_CLOCK = (offMs: number) => {
  const page = globalThis as unknown as { clockOffMs: number; Date: DateConstructor };
  const RealDate = Date;
  page.clockOffMs = offMs;
  page.Date = class extends RealDate {
    constructor(...given: unknown[]) {
      super(...((given.length > 0 ? given : [RealDate.now() + page.clockOffMs]) as [number]));
    }
    static override now() {
      return RealDate.now() + page.clockOffMs;
    }
  } as DateConstructor;
};
