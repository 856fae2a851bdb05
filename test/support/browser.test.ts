import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it } from "vitest";
import { chromiumPath, launchBrowser } from "./browser.js";
import { atEndOfFile } from "./test-file.js";
import { waitFor } from "./wait.js";

describe.skipIf(!chromiumPath)("the browser for tests", () => {
  it("tells of every page's errors and of every request that left its origin, and lets none of them out", async () => {
    const foreign: string[] = [];
    const elsewhere = await serve((path) => {
      foreign.push(path);
      return "";
    });
    const origin = await serve(
      () => `<script>
        console.error("said");
        fetch("${elsewhere}/fetched").catch(() => {});
        new WebSocket("${elsewhere.replace("http", "ws")}/socket");
        setTimeout(() => { throw new Error("thrown"); });
      </script>`,
    );
    const browser = await launchBrowser();
    const { context, complaints, strayRequests } = await browser.newProfile(origin);
    const page = await context.newPage();
    await page.goto(origin);
    await waitFor(() => strayRequests.length === 2, { what: "two stray requests" });
    await waitFor(() => complaints.some((text) => text.includes("thrown")), { what: "the page's error" });

    expect([...strayRequests].sort()).toEqual([`${elsewhere}/fetched`, `${elsewhere.replace("http", "ws")}/socket`]);
    expect(complaints.some((text) => text.includes("said"))).toBe(true);
    expect(foreign).toEqual([]);

    const innocent = await browser.newProfile(elsewhere);
    await (await innocent.context.newPage()).goto(elsewhere);
    expect(foreign).toContain("/");
    expect(innocent).toMatchObject({ complaints: [], strayRequests: [] });
  });
});

async function serve(bodyOf: (path: string) => string): Promise<string> {
  const server = createServer((req, res) => {
    if (req.url === "/favicon.ico") return void res.writeHead(204).end();
    res.setHeader("content-type", "text/html");
    res.end(bodyOf(req.url ?? ""));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  atEndOfFile(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
