import type { CORSOptions } from "graphql-yoga";
import { HOUR, SECOND } from "../domain/time.js";

/** Whether a page of this origin may read answers: one of CORS_ORIGINS, or any where that says `*`. */
function isAllowed(origin: string, allowed: readonly string[]): boolean {
  return allowed.includes(origin) || allowed.includes("*");
}

/** The CORS headers for an origin, or none: browsers then refuse. Never credentials: tokens are sent by hand, there are no cookies. */
export function corsFor(origin: string | null, allowed: readonly string[]): CORSOptions {
  if (origin === null || !isAllowed(origin, allowed)) return false;
  return {
    origin: [origin],
    methods: ["GET", "POST", "OPTIONS"],
    allowedHeaders: ["authorization", "content-type", "accept", "x-request-id"],
    exposedHeaders: ["x-request-id"],
    credentials: false,
    maxAge: (1 * HOUR) / SECOND,
  };
}

/**
 * Whether a WebSocket may be opened. Browsers let any page open one anywhere and only tell the page's origin, so it is
 * checked here: this host's own pages and CORS_ORIGINS. Clients that are no browsers send none.
 */
export function mayOpenWebSocket(
  headers: { origin?: string | undefined; host?: string | undefined },
  allowed: readonly string[],
): boolean {
  const { origin, host } = headers;
  if (origin === undefined || isAllowed(origin, allowed)) return true;
  return URL.canParse(origin) && new URL(origin).host === host?.toLowerCase();
}
