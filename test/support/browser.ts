import type { BrowserContextOptions } from "playwright-core";
import { openChromium, openProfile, type Profile } from "./chromium.js";
import { findProgram } from "./programs.js";
import { atEndOfFile, makeTempDir } from "./test-file.js";

/** Debian's Chromium, or null where it isn't installed: `describe.skipIf(!chromiumPath)`. */
export const chromiumPath = findProgram("chromium", "chromium");

/** A Chromium of this test file's own, closed at its end. */
export interface TestBrowser {
  /** A new visitor of the pages at `origin`, who has never been there. */
  newProfile(origin: string, options?: BrowserContextOptions): Promise<Profile>;
}

/** Starts a real Chromium. It has a home of its own, and none of this user's settings. */
export async function launchBrowser(): Promise<TestBrowser> {
  if (chromiumPath === null) throw new Error("there is no Chromium");
  const home = makeTempDir("chromium");
  const browser = await openChromium(chromiumPath, { PATH: process.env.PATH, HOME: home, TMPDIR: home });
  atEndOfFile(() => browser.close());
  return { newProfile: (origin, options) => openProfile(browser, origin, options) };
}
