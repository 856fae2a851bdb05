/** GraphiQL as a page of its own: everything is in it, so that it needs no network. */
import type { ServerResponse } from "node:http";
import { PLACE_TABS_SCRIPT, type PreparedTabs } from "./explorer-storage.js";

interface Rendered {
  readonly before: Buffer;
  readonly after: Buffer;
}

/** To nobody but this server, whatever its nine megabytes of scripts would like to ask for. */
const CONTENT_SECURITY_POLICY =
  "default-src 'none'; script-src 'unsafe-inline' blob:; worker-src blob:; style-src 'unsafe-inline'; img-src data:; font-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

let rendering: Promise<Rendered> | undefined;

/** Answers with GraphiQL, opened with these tabs. It is made when it is first asked for, and kept. */
export async function sendGraphiql(res: ServerResponse, prepared: PreparedTabs): Promise<void> {
  rendering ??= render();
  const { before, after } = await rendering;
  const options = Buffer.from(optionsFor(prepared));
  res.writeHead(200, {
    "content-type": "text/html; charset=utf-8",
    "content-length": before.length + options.length + after.length,
    // There can be tokens in it.
    "cache-control": "no-store",
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
  });
  res.write(before);
  res.write(options);
  res.end(after);
}

/**
 * Tabs can be dragged, and whenever one gets wider (its font is loaded, its operation chosen) the library behind that takes
 * all of them for moved: the one that was pressed jumped away from under the pointer, and the click was lost.
 */
const STYLE = "<style>.graphiql-tab { transform: none !important }</style>";

/** The page around its options, as bytes: it is the same for everybody, and as a string it would be encoded every time. */
async function render(): Promise<Rendered> {
  const { renderGraphiQL } = await import("@graphql-yoga/render-graphiql");
  const title = "Sluice";
  const marked = { title, endpoint: "where the options go" };
  const page = renderGraphiQL(marked).replace("</head>", `${STYLE}</head>`);
  const [before, after, ...more] = page.split(JSON.stringify(marked));
  if (before === undefined || after === undefined || more.length > 0) throw new Error("GraphiQL's page has changed");
  return { before: Buffer.from(before), after: Buffer.from(after) };
}

/** A JavaScript expression: places the tabs, then gives GraphiQL its options. */
function optionsFor(prepared: PreparedTabs): string {
  const options = {
    title: "Sluice",
    subscriptionsProtocol: "SSE",
    shouldPersistHeaders: prepared.keepHeaders,
    // For a browser that keeps nothing.
    defaultTabs: prepared.tabs,
  };
  return `(() => {
    ${PLACE_TABS_SCRIPT}
    const url = new URL(location.href);
    const linked = url.searchParams.get("query");
    // GraphiQL would open another tab for it.
    url.searchParams.delete("query");
    history.replaceState(null, "", url);
    try {
      placeTabs(localStorage, ${inScript(prepared)}, linked);
    } catch (error) {
      console.warn("The prepared tabs could not be stored.", error);
    }
    return ${inScript(options)};
  })()`;
}

/** JSON that can stand in a script of a page: `</script>` in a text would end it. */
function inScript(value: unknown): string {
  return JSON.stringify(value).replaceAll("<", "\\u003c");
}
