/** What a visitor does in the explorer, with the mouse, and what he reads there. */
import type { Locator, Page } from "playwright-core";
import type { Profile } from "./chromium.js";
import { waitFor } from "./wait.js";

const PATIENCE_MS = 60_000;
const RESULT = ".result-window .view-lines";
/** The editor of variables or of headers, whichever is shown. */
const BELOW = ".graphiql-editor-tool .graphiql-editor:not(.hidden)";

/** Opens the explorer in a new window of that browser, and waits until it knows the schema. */
export async function openExplorer({ context }: Profile, url: string): Promise<Page> {
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  await introspected(page, () => page.goto(`${url}/graphql`));
  return page;
}

/** Loads the page again. */
export async function reloadExplorer(page: Page): Promise<void> {
  await introspected(page, () => page.reload());
}

/** The titles of the tabs, the first one first. */
export function tabTitles(page: Page): Promise<string[]> {
  return page.locator(".graphiql-tab-button").allInnerTexts();
}

export async function openTab(page: Page, title: string): Promise<void> {
  await page.locator(".graphiql-tab-button").getByText(title, { exact: true }).click();
  await page.locator(".graphiql-tab-active").getByText(title, { exact: true }).waitFor();
  // A tenth of a second after the tab it knows the operation too. Run before that, it looks for the one of the last tab.
  await waitFor(async () => (await activeTabOf(page)).operationName === title, { what: `the operation of ${title}` });
}

/** Presses Run, and where the tab has several operations chooses one. */
export async function run(page: Page, operation?: string): Promise<void> {
  await page.getByRole("button", { name: /^Execute query/ }).click();
  if (operation !== undefined) await page.getByRole("menuitem", { name: operation, exact: true }).click();
}

/** Runs a tab that reserves, again as long as the answer asks for it, and gives the answer that is final for now. */
export async function reserveIn(page: Page): Promise<string> {
  for (;;) {
    await run(page);
    const answer = await shownWith(page.locator(RESULT), /"(QUEUED|PENDING|SERVICE_UNAVAILABLE)"/);
    if (answer.includes('"QUEUED"')) return answer;
  }
}

/** Presses Stop. */
export async function stop(page: Page): Promise<void> {
  await page.getByRole("button", { name: /^Stop query/ }).click();
  await page.getByRole("button", { name: /^Execute query/ }).waitFor();
}

/** Waits until the result pane shows `text`, and gives all that it shows. */
export function resultWith(page: Page, text: string): Promise<string> {
  return shownWith(page.locator(RESULT), text);
}

/** The same of the variables, below the query. */
export function variablesWith(page: Page, text: string): Promise<string> {
  return shownWith(page.locator(`${BELOW} .view-lines`), text);
}

/** Types into the query of the tab that is in front. GraphiQL closes brackets and quotes by itself. */
export async function typeQuery(page: Page, text: string): Promise<void> {
  await page.locator(".graphiql-query-editor .view-lines").click();
  await page.keyboard.type(text);
}

/** Types into its headers. */
export async function typeHeaders(page: Page, text: string): Promise<void> {
  await page.getByRole("button", { name: "Headers" }).click();
  await page.locator(`${BELOW} .view-lines`).click();
  await page.keyboard.type(text);
}

export async function addTab(page: Page): Promise<void> {
  await page.getByRole("button", { name: "New tab" }).click();
}

/** All that this page has in localStorage, as one text. */
export function storedText(page: Page): Promise<string> {
  return page.evaluate("JSON.stringify({ ...localStorage })");
}

async function activeTabOf(page: Page): Promise<{ operationName?: string | null }> {
  const stored = await page.evaluate<string | null>('localStorage.getItem("graphiql:tabState")');
  const { tabs, activeTabIndex } = JSON.parse(stored ?? '{"tabs":[]}');
  return tabs[activeTabIndex] ?? {};
}

async function shownWith(lines: Locator, text: string | RegExp): Promise<string> {
  try {
    await lines.getByText(text).first().waitFor();
  } catch (error) {
    throw new Error(`no ${text} in: ${await shownIn(lines)}`, { cause: error });
  }
  return await shownIn(lines);
}

async function shownIn(lines: Locator): Promise<string> {
  // Monaco writes spaces that don't break.
  return (await lines.allTextContents()).join("").replaceAll("\u00a0", " ");
}

async function introspected(page: Page, load: () => Promise<unknown>): Promise<void> {
  const [response] = await Promise.all([
    page.waitForResponse((response) => (response.request().postData() ?? "").includes("__schema")),
    load(),
  ]);
  const { errors } = (await response.json()) as { errors?: unknown };
  if (errors) throw new Error(`the schema could not be asked for: ${JSON.stringify(errors)}`);
  await page.locator(".graphiql-query-editor .view-line").first().waitFor();
}
