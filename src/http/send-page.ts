import { readFile } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { extname, join } from "node:path";
import { sendJson } from "./send-json.js";

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".svg": "image/svg+xml",
};

/** One file of a page that lies in one folder, flat. 404 for every other name. */
export async function sendPage(res: ServerResponse, folder: string, name: string): Promise<void> {
  const type = TYPES[extname(name)];
  const content =
    type && /^[a-z0-9-]+\.[a-z]+$/.test(name) ? await readFile(join(folder, name)).catch(() => null) : null;
  if (!content || !type) return sendJson(res, 404, { error: "There is nothing here." });
  res.writeHead(200, {
    "content-type": type,
    "content-length": content.length,
    "cache-control": "no-cache",
    "content-security-policy":
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
  });
  res.end(content);
}
