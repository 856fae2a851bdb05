import type { IncomingMessage } from "node:http";

const LOOPBACK_ADDRESS = /^(::1|(::ffff:)?127\.\d+\.\d+\.\d+)$/i;
const LOOPBACK_HOST = /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/i;

/** What proxies say of whom they ask for. */
const FORWARDING = /^(forwarded|via|x-real-ip|x-forwarded-.*|cf-connecting-ip|true-client-ip)$/;

/**
 * Whether a browser on this machine opens a page of this server. Three things can stand between: another site's name that
 * resolves to this machine (DNS rebinding), which shows in Host; a proxy beside us, which speaks for everybody; another
 * site's script, which browsers let read answers where CORS allows its Origin.
 */
export function isFromThisMachine({ headers, socket }: Pick<IncomingMessage, "headers" | "socket">): boolean {
  return (
    LOOPBACK_ADDRESS.test(socket.remoteAddress ?? "") &&
    LOOPBACK_HOST.test(headers.host ?? "") &&
    headers.origin === undefined &&
    !Object.keys(headers).some((name) => FORWARDING.test(name))
  );
}
