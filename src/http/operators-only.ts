import type { IncomingMessage, ServerResponse } from "node:http";
import { principalFromAuthorization, type Verifier } from "../admission/identity.js";
import { SluiceError } from "../domain/errors.js";
import type { Route } from "./routes.js";
import { sendJson } from "./send-json.js";

/**
 * A route for operators: by an operator's token as a Bearer, or as the password of Basic authentication with any name,
 * which is how a browser can ask for it. Only for routes that change nothing: browsers send Basic credentials by
 * themselves, also for another site's pages.
 */
export function operatorsOnly(verifier: Verifier, answer: Route): Route {
  return async (req, res, scope) => {
    const refused = await refusalOf(verifier, req);
    if (!refused) return answer(req, res, scope);
    if (refused.status === 401) offerAuthentication(res);
    sendJson(res, refused.status, { error: refused.message });
  };
}

async function refusalOf(
  verifier: Verifier,
  req: IncomingMessage,
): Promise<{ readonly status: number; readonly message: string } | null> {
  try {
    const principal = await principalFromAuthorization(verifier, asBearer(req.headers.authorization));
    if (!principal) return { status: 401, message: "This is for operators: send an operator's token." };
    return principal.role === "operator" ? null : { status: 403, message: "This is for operators." };
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error;
    return { status: error.code === "UNAUTHENTICATED" ? 401 : 503, message: error.message };
  }
}

function offerAuthentication(res: ServerResponse): void {
  res.setHeader("www-authenticate", [
    "Bearer",
    'Basic realm="Sluice: any name, and an operator\'s token as the password", charset="UTF-8"',
  ]);
}

/** `Basic name:token` as the Bearer that it stands for; everything else as it is, to be refused or verified. */
function asBearer(authorization: string | undefined): string | undefined {
  const [, encoded] = /^Basic +([A-Za-z0-9+/]+=*) *$/i.exec(authorization ?? "") ?? [];
  if (encoded === undefined) return authorization;
  const [, token] = /^[^:]*:(\S+)$/.exec(Buffer.from(encoded, "base64").toString("utf8")) ?? [];
  return token === undefined ? authorization : `Bearer ${token}`;
}
