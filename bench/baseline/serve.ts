import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createYoga } from "graphql-yoga";
import type { Reserve } from "./reservations.js";
import { type Context, schema } from "./schema.js";
import { createVerifier } from "./verify-token.js";

const BODY_BYTES = 128 * 1024;
const KEEP_ALIVE_MS = 65_000;

interface NodeRequest {
  readonly req: IncomingMessage;
}

/** GraphQL over HTTP for one way of reserving, with the tokens' secret from the environment. It listens nowhere yet. */
export async function createApi(reserve: Reserve): Promise<Server> {
  const verifyBuyer = await createVerifier();
  const yoga = createYoga<NodeRequest, Context>({
    schema,
    context: async ({ req }) => ({ buyerId: await verifyBuyer(req.headers.authorization), reserve }),
    graphiql: false,
    landingPage: false,
    multipart: false,
    cors: false,
    // Its own limit costs 0.22 ms of processor a request: the guard below does for the same.
    maxRequestBodySize: false,
  });
  const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, (req, res) => {
    if (isSmall(req)) void yoga(req, res, { req });
    else refuse(res);
  });
  return server;
}

/** A body of unknown length, in chunks, is none that a client of ours sends. */
function isSmall({ headers }: IncomingMessage): boolean {
  return !("transfer-encoding" in headers) && Number(headers["content-length"] ?? 0) <= BODY_BYTES;
}

function refuse(res: ServerResponse): void {
  res.writeHead(413, { connection: "close" }).end();
}
