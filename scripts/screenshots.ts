/**
 * The README's pictures, of a running `npm start`:
 *
 *     node --import tsx scripts/screenshots.ts http://127.0.0.1:4000
 */
import { mkdirSync, statSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { openChromium, openProfile } from "../test/support/chromium.js";
import { openExplorer, openTab, resultWith, run } from "../test/support/graphiql.js";
import { findProgram } from "../test/support/programs.js";

const url = process.argv[2] ?? "http://127.0.0.1:4000";
const folder = fileURLToPath(new URL("../docs/images", import.meta.url));
mkdirSync(folder, { recursive: true });

const chromium = findProgram("chromium", "chromium");
if (chromium === null) process.exit(1);
const browser = await openChromium(chromium, process.env);
try {
  await takeExplorer(`${folder}/explorer.png`);
  await takeStorefront(`${folder}/storefront.png`);
} finally {
  await browser.close();
}

/** The tour's third tab, once the order is there. */
async function takeExplorer(path: string): Promise<void> {
  const viewport = { width: 1280, height: 800 };
  const page = await openExplorer(await openProfile(browser, url, { viewport, deviceScaleFactor: 1 }), url);
  await run(page);
  await resultWith(page, '"QUEUED"');
  await openTab(page, "Watch");
  await run(page);
  await resultWith(page, '"SUCCESS"');
  // Nothing that is only there because the mouse is.
  await page.mouse.move(900, 700);
  await take(page, path);
}

async function takeStorefront(path: string): Promise<void> {
  const viewport = { width: 390, height: 844 };
  const { context } = await openProfile(browser, url, { viewport, deviceScaleFactor: 1, isMobile: true });
  const page = await context.newPage();
  await page.goto(url);
  await page.getByRole("button", { name: /^Buy / }).first().waitFor();
  await take(page, path);
}

async function take(page: Awaited<ReturnType<typeof openExplorer>>, path: string): Promise<void> {
  await page.evaluate("document.fonts.ready");
  await page.screenshot({ path, style: ".monaco-editor .scrollbar { visibility: hidden }" });
  console.log(`${path}  ${Math.round(statSync(path).size / 1024)} KB`);
}
