import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { beforeAll, describe, expect, it } from "vitest";
import type { RequestScope } from "../../src/graphql/context.js";
import { findRoute, type Route, type Routes, readOnly, refuseMethod } from "../../src/http/routes.js";
import { atEndOfFile } from "../support/test-file.js";

const says =
  (what: string): Route =>
  async (_req, res) => {
    res.end(what);
  };

const routes: Routes = {
  "/": says("root"),
  "/exact": says("exact"),
  "/below/*": says("below"),
  "/below/exact": says("exact below"),
  "/told": readOnly(says("told")),
  "/given": async (_req, res) => refuseMethod(res, "POST"),
};

let origin: string;
beforeAll(async () => {
  const server = createServer((req: IncomingMessage, res) => {
    void findRoute(routes, req.url ?? "")(req, res, {} as RequestScope);
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  atEndOfFile(() => void server.close().closeAllConnections());
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

const ask = (path: string, method = "GET") => fetch(`${origin}${path}`, { method });

describe("a route", () => {
  it.each([
    ["/", "root"],
    ["/exact", "exact"],
    ["/below", "below"],
    ["/below/", "below"],
    ["/below/a/b", "below"],
    ["/below/exact", "exact below"],
    ["/below/exact/a", "below"],
    ["/below/*", "below"],
  ])("answers for its path, and with /* for all that is below: %s is %s", async (path, answer) => {
    expect(await (await ask(path)).text()).toBe(answer);
  });

  it.each(["/exact/", "/exact/a", "/EXACT", "/belowa", "/*", "//", "/__proto__", "/toString", "/below%2Fa"])(
    "answers for nothing else: %s is 404",
    async (path) => {
      const response = await ask(path);
      expect([response.status, await response.json()]).toEqual([404, { error: "There is nothing here." }]);
    },
  );

  it("that only tells takes GET and HEAD, and says so to the others", async () => {
    expect((await ask("/told")).status).toBe(200);
    expect((await ask("/told", "HEAD")).status).toBe(200);
    for (const method of ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"]) {
      const response = await ask("/told", method);
      expect([response.status, response.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
      expect(await response.json()).toEqual({ error: "Only GET is answered here." });
    }
  });

  it("that is for another method names it", async () => {
    const response = await ask("/given");
    expect([response.status, response.headers.get("allow")]).toEqual([405, "POST"]);
    expect(await response.json()).toEqual({ error: "Only POST is answered here." });
  });
});
