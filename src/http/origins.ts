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

/** The headers by which Yoga tells a browser so. Empty where it tells nothing. */
export function corsHeaders(origin: string | undefined, allowed: readonly string[]): Readonly<Record<string, string>> {
  const cors = origin === undefined ? false : corsFor(origin, allowed);
  if (!cors) return NO_HEADERS;
  return {
    "access-control-allow-origin": String(cors.origin),
    "access-control-allow-methods": String(cors.methods?.join(", ")),
    "access-control-allow-headers": String(cors.allowedHeaders?.join(", ")),
    "access-control-expose-headers": String(cors.exposedHeaders?.join(", ")),
    "access-control-max-age": String(cors.maxAge),
  };
}

const NO_HEADERS = {};

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
