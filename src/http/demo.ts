/** What there is only while SLUICE_DEMO is on: the storefront page, and tokens for whoever asks. */
import type { IncomingMessage } from "node:http";
import { join } from "node:path";
import { subjectOfOldToken } from "../admission/old-token.js";
import { signToken } from "../admission/sign-token.js";
import type { Config } from "../config.js";
import { newId } from "../domain/ids.js";
import { type Routes, readOnly, refuseMethod } from "./routes.js";
import { sendJson } from "./send-json.js";
import { sendPage } from "./send-page.js";

export interface DemoResources {
  readonly config: Config;
}

const PAGE_PATH = "/page/";

/**
 * `/` and what the page loads, and `POST /demo/buyer`: a token, `{ buyerId, token }`, for a new buyer, or for the same one
 * where an old token of ours comes as Authorization, even an expired one.
 */
export function demoRoutes({ config }: DemoResources): Routes {
  const folder = join(config.dataDir, "page");
  return {
    "/": readOnly((_req, res) => sendPage(res, folder, "index.html")),
    [`${PAGE_PATH}*`]: readOnly((req, res) => sendPage(res, folder, nameIn(req))),
    "/demo/buyer": async (req, res) => {
      if (req.method !== "POST") return refuseMethod(res, "POST");
      const buyerId = (await knownBuyer(config, req)) ?? `visitor-${newId()}`;
      sendJson(res, 200, { buyerId, token: await signDemoToken(config, "buyer", buyerId) });
    },
  };
}

/** A token for the demo. @throws where there is no secret to sign with, which the configuration refuses */
export function signDemoToken(config: Config, role: "buyer" | "operator", userId: string): Promise<string> {
  return signToken({ ...signing(config), role, userId });
}

function knownBuyer(config: Config, req: IncomingMessage): Promise<string | null> {
  const [, token = null] = /^Bearer +(\S+) *$/i.exec(req.headers.authorization ?? "") ?? [];
  return token === null ? Promise.resolve(null) : subjectOfOldToken({ ...signing(config), token });
}

function signing(config: Config): { secret: string; issuer: string; audience: string } {
  const { JWT_SECRET: secret, JWT_ISSUER: issuer, JWT_AUDIENCE: audience } = config;
  if (secret === undefined) throw new Error("the demo has no JWT_SECRET");
  return { secret, issuer, audience };
}

function nameIn(req: IncomingMessage): string {
  const [path = ""] = (req.url ?? "").split("?");
  return path.slice(PAGE_PATH.length);
}
