/** What a plain GraphQL request over HTTP says. */
export interface Params {
  readonly query: string;
  readonly operationName: string | undefined;
  readonly variables: Readonly<Record<string, unknown>> | undefined;
}

/** The parameters in a body, or null where anything about it is unusual, wrong, or not text in JSON. Never throws. */
export function readParams(bytes: Buffer): Params | null {
  let body: unknown;
  try {
    body = JSON.parse(bytes.toString("utf8"));
  } catch {
    return null;
  }
  if (!isPlainObject(body)) return null;
  const { query, operationName, variables, extensions } = body;
  for (const name in body) if (!PARAMETERS.has(name)) return null;
  if (typeof query !== "string" || query === "") return null;
  if (operationName !== undefined && operationName !== null && typeof operationName !== "string") return null;
  if (variables !== undefined && variables !== null && !isPlainObject(variables)) return null;
  // Clients tell their name there. Nothing is done with it.
  if (extensions !== undefined && extensions !== null && !isPlainObject(extensions)) return null;
  return { query, operationName: operationName ?? undefined, variables: variables ?? undefined };
}

const PARAMETERS = new Set(["query", "operationName", "variables", "extensions"]);

function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
