import { beforeEach, describe, expect, it } from "vitest";
import { type KeyValueStore, type PreparedTabs, placeTabs } from "../../src/http/explorer-storage.js";

const HOUR = 60 * 60 * 1_000;
const NOW = 1_800_000_000_000;

interface Tab {
  readonly id: string;
  readonly title: string;
  readonly query: string | null;
  readonly variables: string | null;
  readonly headers: string | null;
}

let stored: Map<string, string>;
let storage: KeyValueStore;

beforeEach(() => {
  stored = new Map();
  storage = {
    getItem: (key) => stored.get(key) ?? null,
    setItem: (key, value) => void stored.set(key, value),
    removeItem: (key) => void stored.delete(key),
  };
});

describe("prepared tabs", () => {
  it("are put where GraphiQL looks for its tabs, the first one in front", () => {
    open(page("sale-1"));
    expect(titles()).toEqual(["Reserve", "Operate"]);
    expect(front()).toMatchObject({ title: "Reserve", variables: "of sale-1", headers: "buyer at 0" });
    expect(stored.get("graphiql:query")).toBe("# hello\nmutation Reserve { reserve }");
    expect(stored.get("graphiql:variables")).toBe("of sale-1");
    expect(stored.get("graphiql:headers")).toBe("buyer at 0");
  });

  it("stay when the page is loaded again, and so do their tokens, their order, what was closed, and what is in front", () => {
    open(page("sale-1"));
    write((tabs) => [own("query Mine { serverTime }"), ...tabs.slice(1)], 1);
    open(page("sale-1", { now: NOW + HOUR }));
    expect(titles()).toEqual(["Mine", "Operate"]);
    expect(front()).toMatchObject({ title: "Operate", headers: "operator at 0" });
    expect(stored.get("graphiql:headers")).toBe("operator at 0");
  });

  for (const [what, next] of [
    ["another sale", page("sale-2", { now: NOW + HOUR })],
    ["another edition", page("sale-1", { now: NOW + HOUR, edition: "another" })],
    ["tokens that expire within the hour", page("sale-1", { now: NOW + 23 * HOUR })],
    ["no sale any more", page(null, { now: NOW + HOUR })],
  ] as const) {
    it(`are replaced for ${what}, and the visitor's own tabs stay behind them`, () => {
      open(page("sale-1"));
      write((tabs) => [...tabs, own("query Mine { serverTime }")], 1);
      open(next);
      expect(titles()).toEqual(["Reserve", "Operate", "Mine"]);
      expect(front()).toMatchObject({ title: "Reserve", headers: `buyer at ${(next.now - NOW) / HOUR}` });
      expect(stored.get("graphiql:headers")).toBe(front()?.headers);
    });
  }

  it("stay for a sale that the page says they are still good for", () => {
    open(page("sale-1"));
    for (const keepFor of [["sale-2", "sale-1"], "any"] as const) {
      open(page("sale-2", { now: NOW + HOUR, keepFor }));
      expect(front()).toMatchObject({ variables: "of sale-1", headers: "buyer at 0" });
    }
  });

  it("that the visitor changed are his own from then on, and empty tabs are nobody's", () => {
    open(page("sale-1"));
    write(
      ([first, second]) => [{ ...(first as Tab), query: "mutation Reserve { mine }" }, second as Tab, own(null)],
      2,
    );
    open(page("sale-2", { now: NOW + HOUR }));
    expect(titles()).toEqual(["Reserve", "Operate", "Reserve"]);
    expect(tabs()[2]?.query).toBe("mutation Reserve { mine }");
  });

  it("take the place of nothing that GraphiQL had stored before, and survive storage that is broken", () => {
    for (const broken of ["{", "null", "[]", '{"tabs":3}', '"text"']) {
      stored.set("graphiql:tabState", JSON.stringify({ tabs: [own("query Mine { serverTime }")], activeTabIndex: 7 }));
      stored.set("sluice:explorer", broken);
      open(page("sale-1"));
      expect(titles()).toEqual(["Reserve", "Operate", "Mine"]);
    }
  });
});

describe("a link with a query", () => {
  it("opens in a tab of its own, without the token of another tab", () => {
    open(page("sale-1"), "query Shared { serverTime }");
    expect(titles()).toEqual(["Reserve", "Operate", "Link"]);
    expect(front()).toMatchObject({ query: "query Shared { serverTime }", headers: null });
    expect(stored.has("graphiql:headers")).toBe(false);

    open(page("sale-1"), "query Shared { serverTime }");
    expect(titles()).toEqual(["Reserve", "Operate", "Link"]);
  });

  it("brings the tab that has it to the front", () => {
    open(page("sale-1"));
    open(page("sale-1"), "mutation Operate { pause }");
    expect(titles()).toEqual(["Reserve", "Operate"]);
    expect(front()?.title).toBe("Operate");
  });

  it("that is only the address of a prepared tab of before opens nothing", () => {
    open(page("sale-1"));
    const next = page("sale-2", { now: NOW + HOUR });
    open(
      { ...next, tabs: next.tabs.map((tab) => ({ ...tab, query: tab.query.replace("reserve", "renamed") })) },
      "# hello\nmutation Reserve { reserve }",
    );
    expect(titles()).toEqual(["Reserve", "Operate"]);
    expect(front()?.query).toContain("renamed");
  });
});

it("outside of the demo no header stays in the storage, whoever put it there", () => {
  open(page("sale-1"));
  write((tabs) => [...tabs, { ...own("query Mine { serverTime }"), headers: "a token of the demo" }], 2);
  open(page(null, { edition: "plain", keepHeaders: false, expiresAt: null }));
  expect(titles()).toEqual(["Reserve", "Operate", "Mine"]);
  expect(tabs().map(({ headers }) => headers)).toEqual([null, null, null]);
  expect([...stored].filter(([, value]) => value.includes("token") || value.includes("buyer at"))).toEqual([]);
  expect(stored.has("graphiql:headers")).toBe(false);
});

function page(saleId: string | null, options: Partial<PreparedTabs> = {}): PreparedTabs {
  const { now = NOW } = options;
  const at = (now - NOW) / HOUR;
  return {
    tabs: [
      { query: "# hello\nmutation Reserve { reserve }", variables: `of ${saleId}`, headers: `buyer at ${at}` },
      { query: "mutation Operate { pause }", variables: null, headers: `operator at ${at}` },
    ],
    edition: "first",
    saleId,
    keepFor: [saleId],
    now,
    expiresAt: now + 24 * HOUR,
    keepHeaders: true,
    ...options,
  };
}

function own(query: string | null): Tab {
  const title = /query (\w+)/.exec(query ?? "")?.[1] ?? "<untitled>";
  return { id: `own ${title}`, title, query, variables: null, headers: null };
}

function open(prepared: PreparedTabs, linked: string | null = null): void {
  placeTabs(storage, prepared, linked);
}

function state(): { tabs: Tab[]; activeTabIndex: number } {
  return JSON.parse(stored.get("graphiql:tabState") ?? "");
}

function tabs(): Tab[] {
  return state().tabs;
}

function titles(): string[] {
  return tabs().map(({ title }) => title);
}

function front(): Tab | undefined {
  const { tabs, activeTabIndex } = state();
  return tabs[activeTabIndex];
}

/** As GraphiQL does when the visitor works. */
function write(change: (tabs: Tab[]) => Tab[], activeTabIndex: number): void {
  stored.set("graphiql:tabState", JSON.stringify({ tabs: change(tabs()), activeTabIndex }));
}
