/**
 * What runs in the visitor's browser before GraphiQL does. GraphiQL keeps its tabs in localStorage and takes `defaultTabs`
 * only where it finds none, so after a restart visitors would be left with tabs of a sale that is over and tokens that
 * have expired. Prepared tabs are therefore put where GraphiQL looks for its own.
 *
 * The functions are sent to the browser as text, so they can use nothing but each other.
 */
import type { ExplorerTab } from "./explorer-tabs.js";

/** What a rendered page says of its tabs. */
export interface PreparedTabs {
  readonly tabs: readonly ExplorerTab[];
  /** Changes with whatever makes earlier tabs useless: their texts, and the key that signed their tokens. */
  readonly edition: string;
  /** the sale that they are about */
  readonly saleId: string | null;
  /** The sales whose earlier tabs are as good as these; any where nothing is known of the sales. */
  readonly keepFor: readonly (string | null)[] | "any";
  /** Both in milliseconds, by the server's clock. */
  readonly now: number;
  readonly expiresAt: number | null;
  /** whether GraphiQL may keep headers, and with them tokens */
  readonly keepHeaders: boolean;
}

/** The part of the browser's localStorage that is used. */
export interface KeyValueStore {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
  removeItem(key: string): void;
}

interface StoredTab extends ExplorerTab {
  readonly id: string;
  readonly title: string;
  readonly operationName: string | null;
  readonly response: null;
}

interface StoredTabs {
  readonly tabs: readonly StoredTab[];
  readonly activeTabIndex: number;
}

/** What was put in last. */
interface Mark {
  readonly edition: string;
  readonly saleId: string | null;
  readonly expiresAt: number | null;
  /** id → query */
  readonly tabs: Readonly<Record<string, string>>;
}

/**
 * Puts the prepared tabs into GraphiQL's storage, in front of those that the visitor wrote or changed himself. Earlier
 * prepared tabs that still work stay as they are, closed ones closed. `linked` is the query of a link that was followed
 * here, or of a page that is loaded again, if any: its tab comes to the front.
 */
export function placeTabs(storage: KeyValueStore, page: PreparedTabs, linked: string | null): void {
  const read = <Value>(key: string): Partial<Value> => {
    try {
      return (JSON.parse(storage.getItem(key) ?? "{}") ?? {}) as Partial<Value>;
    } catch {
      return {};
    }
  };
  const mark = read<Mark>("sluice:explorer");
  const { tabs = [], activeTabIndex = 0 } = read<StoredTabs>("graphiql:tabState");
  let state: StoredTabs = { tabs, activeTabIndex: tabs[activeTabIndex] ? activeTabIndex : 0 };
  if (tabs.length === 0 || !isStillGood(mark, page)) {
    const prepared = preparedTabs(page);
    const own = tabs.filter(({ id, query }) => query?.trim() && mark.tabs?.[id] !== query);
    state = { tabs: [...prepared, ...own], activeTabIndex: 0 };
    const { edition, saleId, expiresAt } = page;
    const queries = Object.fromEntries(prepared.map(({ id, query }) => [id, query]));
    storage.setItem("sluice:explorer", JSON.stringify({ edition, saleId, expiresAt, tabs: queries }));
  }
  const replaced = Object.values(mark.tabs ?? {}).some((query) => query === linked);
  if (linked !== null) state = withLinked(state, linked, replaced, `linked-${page.now}`);
  if (!page.keepHeaders) state = { ...state, tabs: state.tabs.map((tab) => ({ ...tab, headers: null })) };

  storage.setItem("graphiql:tabState", JSON.stringify(state));
  // GraphiQL compares these with the tabs to find the one that was in front.
  for (const key of ["query", "variables", "headers"] as const) {
    const value = state.tabs[state.activeTabIndex]?.[key];
    if (value) storage.setItem(`graphiql:${key}`, value);
    else storage.removeItem(`graphiql:${key}`);
  }
}

/** Whether what was put in last is as good as what the page brings. */
function isStillGood({ edition, saleId = null, expiresAt = null }: Partial<Mark>, page: PreparedTabs): boolean {
  const HOUR_MS = 3_600_000;
  const lasts = expiresAt === null || expiresAt > page.now + HOUR_MS;
  const isRunning = page.keepFor === "any" || page.keepFor.includes(saleId);
  return edition === page.edition && lasts && isRunning;
}

/** As GraphiQL stores tabs. It names them after their operations. */
function preparedTabs({ tabs, now }: PreparedTabs): StoredTab[] {
  return tabs.map((tab, at) => {
    const operationName = /^(?:query|mutation|subscription) (\w+)/m.exec(tab.query)?.[1] ?? null;
    return { ...tab, id: `prepared-${now}-${at}`, title: operationName ?? "", operationName, response: null };
  });
}

/** The tab with that query in front: one that is there, or a new one, unless it was a prepared one that is gone. */
function withLinked(state: StoredTabs, query: string, isGone: boolean, id: string): StoredTabs {
  const { tabs, activeTabIndex } = state;
  if (tabs[activeTabIndex]?.query === query) return state;
  const at = tabs.findIndex((tab) => tab.query === query);
  if (at >= 0) return { tabs, activeTabIndex: at };
  if (isGone) return state;
  const linked = { id, title: "Link", query, variables: null, headers: null, operationName: null, response: null };
  return { tabs: [...tabs, linked], activeTabIndex: tabs.length };
}

/** `placeTabs` and all that it uses, as JavaScript for the page. */
export const PLACE_TABS_SCRIPT = `
  // tsx wraps functions that have a name in this.
  const __name = (value) => value;
  ${[isStillGood, preparedTabs, withLinked, placeTabs].join("\n")}`;
