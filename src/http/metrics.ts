import type { ServerResponse } from "node:http";
import { SluiceError } from "../domain/errors.js";
import type { RequestScope } from "../graphql/context.js";
import type { Metrics } from "../observability/metrics.js";
import { sendJson } from "./send-json.js";

export interface MetricsResources {
  readonly metrics: Metrics;
}

/** `/metrics` in Prometheus' text format, for operators only: the scraper sends an operator's token. */
export async function sendMetrics(
  resources: MetricsResources,
  res: ServerResponse,
  scope: RequestScope,
): Promise<void> {
  const refused = await refusal(scope);
  if (refused) {
    if (refused.status === 401) res.setHeader("www-authenticate", "Bearer");
    return sendJson(res, refused.status, { error: refused.message });
  }
  const { registry } = resources.metrics;
  const text = await registry.metrics();
  res.writeHead(200, { "content-type": registry.contentType, "cache-control": "no-store" }).end(text);
}

async function refusal(scope: RequestScope): Promise<{ status: number; message: string } | null> {
  try {
    const principal = await scope.identify();
    if (!principal) return { status: 401, message: "Metrics are for operators: send an operator's token." };
    return principal.role === "operator" ? null : { status: 403, message: "Metrics are for operators." };
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error;
    return { status: error.code === "UNAUTHENTICATED" ? 401 : 503, message: error.message };
  }
}
