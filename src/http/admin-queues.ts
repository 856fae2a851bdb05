import type { IncomingMessage, ServerResponse } from "node:http";
import { serviceUnavailable } from "../domain/errors.js";
import { HOUR, SECOND } from "../domain/time.js";
import { toClientError } from "../graphql/errors.js";
import { orWhenLate } from "../lifecycle/pause.js";
import type { QueueBoard, QueueBoardResources } from "./queue-board.js";
import type { Route } from "./routes.js";
import { sendJson } from "./send-json.js";

export const ADMIN_QUEUES_PATH = "/admin/queues";

export type AdminQueuesResources = QueueBoardResources;

/** Redis gives up after half a second, a list of sales that was never read after this. */
const ANSWER_WITHIN_MS = 3 * SECOND;

/**
 * bull-board, for looking only. To remove, retry or promote a job there would pass by the operators' mutations, which write
 * down who did it and keep the stores in step; so the queues are read-only to it, and it is asked nothing but GET.
 */
export function adminQueuesRoute(resources: AdminQueuesResources): Route {
  let loading: Promise<QueueBoard> | undefined;
  const load = async () => (await import("./queue-board.js")).createQueueBoard(resources);

  return async (req, res, scope) => {
    // What is below, before dots in it are resolved: they must not lead above it.
    const { pathname, search } = new URL(`http://board${(req.url ?? "").slice(ADMIN_QUEUES_PATH.length)}`);
    const path = pathname.replace(/\/+$/, "") || "/";
    const answer = async () => {
      loading ??= load();
      return (await loading).get(path, search, `${prefixOf(req)}${ADMIN_QUEUES_PATH}`);
    };
    try {
      const response = await orWhenLate(answer(), ANSWER_WITHIN_MS, () => {
        throw serviceUnavailable("The queues did not answer in time.");
      });
      await send(res, path, response);
    } catch (error) {
      const { message, extensions } = toClientError(error, scope.log);
      sendJson(res, extensions.http?.status ?? 500, { error: message });
    }
  };
}

/**
 * What the page may do: run its own scripts and ask its own host. Its styles are set inline, and its one inline script is
 * data. Nobody may put it into a frame.
 */
const CONTENT_SECURITY_POLICY = [
  "default-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "object-src 'none'",
  "base-uri 'self'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

async function send(res: ServerResponse, path: string, response: Response): Promise<void> {
  const type = response.headers.get("content-type") ?? "";
  if (response.status === 404 && !type.startsWith("application/json")) {
    return sendJson(res, 404, { error: "There is nothing here." });
  }
  const body = Buffer.from(await response.arrayBuffer());
  res.writeHead(response.status, {
    "content-type": type,
    "content-length": body.length,
    "cache-control": path.startsWith("/static/") ? `private, max-age=${HOUR / SECOND}` : "no-store",
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
  });
  res.end(body);
}

/** The path that a proxy in front of us has taken off, as it says itself: the page's links must have it. */
function prefixOf(req: IncomingMessage): string {
  const prefix = req.headers["x-forwarded-prefix"];
  return typeof prefix === "string" && /^(\/[A-Za-z0-9_-]+){1,8}$/.test(prefix) ? prefix : "";
}
