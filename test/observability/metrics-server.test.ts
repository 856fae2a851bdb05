import { describe, expect, it } from "vitest";
import { findFreePort } from "../../src/embedded/ports.js";
import type { Health } from "../../src/lifecycle/health.js";
import { createLogger } from "../../src/observability/logger.js";
import { serveMetrics } from "../../src/observability/metrics-server.js";
import { atEndOfFile } from "../support/test-file.js";
import { waitFor } from "../support/wait.js";

const log = createLogger({ level: "silent", name: "api" });
const ready = { httpStatus: 503, body: { status: "unavailable", redis: false, database: true } } as const;
const health: Health = { alive: () => ({ httpStatus: 200, body: { status: "ok" } }), ready: async () => ready };

async function serve(read: () => Promise<string>): Promise<(path: string, init?: RequestInit) => Promise<Response>> {
  const port = await findFreePort();
  const metrics = { contentType: "text/plain; version=0.0.4", read };
  const server = serveMetrics({ port, host: "127.0.0.1", metrics, health, log });
  atEndOfFile(() => server.close());
  const ask = (path: string, init?: RequestInit) => fetch(`http://127.0.0.1:${port}${path}`, init);
  await waitFor(() => ask("/health"), { what: "the server to listen" });
  return ask;
}

describe("the private port", () => {
  it("tells metrics, health and readiness to whoever asks, and nothing else", async () => {
    const ask = await serve(async () => "a 1\n");
    for (const path of ["/metrics", "/metrics?from=prometheus"]) {
      const answer = await ask(path);
      expect([answer.status, answer.headers.get("content-type"), await answer.text()]).toEqual([
        200,
        "text/plain; version=0.0.4",
        "a 1\n",
      ]);
    }
    expect(await (await ask("/health")).json()).toEqual({ status: "ok" });
    const readiness = await ask("/ready");
    expect([readiness.status, await readiness.json()]).toEqual([503, ready.body]);
    expect((await ask("/graphql")).status).toBe(404);
    expect((await ask("/metrics", { method: "POST" })).status).toBe(405);
    expect((await ask("/metrics", { method: "HEAD" })).status).toBe(200);
  });

  it("answers where the metrics can't be read, without saying why", async () => {
    const ask = await serve(async () => {
      throw new Error("a secret");
    });
    const answer = await ask("/metrics");
    expect(answer.status).toBe(500);
    expect(await answer.text()).not.toContain("secret");
    expect((await ask("/health")).status).toBe(200);
  });
});
