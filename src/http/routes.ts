import type { IncomingMessage, ServerResponse } from "node:http";
import type { RequestScope } from "../graphql/context.js";
import { sendJson } from "./send-json.js";

/** Answers requests for one path; `scope` names the request. */
export type Route = (req: IncomingMessage, res: ServerResponse, scope: RequestScope) => Promise<void>;

/** path → route. One that ends with `/*` answers for all that is below it, and for the path itself. */
export type Routes = Readonly<Record<string, Route>>;

/** The route of a path: an exact one first, then the one that is above it, else one that answers 404. */
export function findRoute(routes: Routes, path: string): Route {
  if (Object.hasOwn(routes, path) && !path.endsWith("/*")) return routes[path] ?? nothingHere;
  const above = Object.keys(routes).find((pattern) => pattern.endsWith("/*") && isBelow(path, pattern.slice(0, -2)));
  return (above === undefined ? undefined : routes[above]) ?? nothingHere;
}

const nothingHere: Route = async (_req, res) => sendJson(res, 404, { error: "There is nothing here." });

function isBelow(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`);
}

/** A route that only tells: everything but GET and HEAD is refused. */
export function readOnly(answer: Route): Route {
  return async (req, res, scope) => {
    if (req.method === "GET" || req.method === "HEAD") return answer(req, res, scope);
    refuseMethod(res, "GET, HEAD");
  };
}

/** 405, with what is allowed instead. */
export function refuseMethod(res: ServerResponse, allowed: string): void {
  res.setHeader("allow", allowed);
  sendJson(res, 405, { error: `Only ${allowed.split(", ")[0]} is answered here.` });
}
