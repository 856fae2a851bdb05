/** A Chromium that asks nobody for anything, for tests and screenshots. */
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium } from "playwright-core";

const QUIET = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** A browser profile, empty at first, and what went wrong in its pages. */
export interface Profile {
  readonly context: BrowserContext;
  /** What its pages threw and wrote to the console as errors, so far. */
  readonly complaints: readonly string[];
  /** The URLs that its pages asked another origin than theirs for, so far; they got nothing. */
  readonly strayRequests: readonly string[];
}

/** Starts Chromium from `executablePath`. It ends with this process, should nobody close it. */
export function openChromium(executablePath: string, env: Record<string, string | undefined>): Promise<Browser> {
  return chromium.launch({ executablePath, args: QUIET, env, timeout: 60_000 });
}

/** A new profile for the pages of one origin; to others it can't get. */
export async function openProfile(
  browser: Browser,
  origin: string,
  options: BrowserContextOptions = {},
): Promise<Profile> {
  const context = await browser.newContext(options);
  const complaints: string[] = [];
  const strayRequests: string[] = [];
  context.on("weberror", (webError) => complaints.push(String(webError.error().stack)));
  context.on("console", (message) => {
    if (message.type() === "error") complaints.push(`${message.text()} (${message.location().url})`);
  });
  const isStray = (url: URL) => url.protocol !== "data:" && url.protocol !== "blob:" && !isOf(url, origin);
  await context.route(isStray, (route) => {
    strayRequests.push(route.request().url());
    return route.abort();
  });
  await context.routeWebSocket(isStray, (socket) => {
    strayRequests.push(socket.url());
    return socket.close();
  });
  return { context, complaints, strayRequests };
}

function isOf(url: URL, origin: string): boolean {
  return new URL(url.href.replace(/^ws/, "http")).origin === new URL(origin).origin;
}
