/** bull-board over the queues of the sales that are served. Several megabytes: to be imported when somebody looks. */
import { createBullBoard } from "@bull-board/api";
import { BullMQAdapter } from "@bull-board/api/bullMQAdapter";
import { HonoAdapter } from "@bull-board/hono";
import { serveStatic } from "@hono/node-server/serve-static";
import type { Queue } from "bullmq";
import { serviceUnavailable } from "../domain/errors.js";
import type { Sale } from "../domain/model.js";
import { createServedSales, type ServedSalesDeps } from "../operations/served-sales.js";
import type { OrderQueues } from "../queue/queues.js";
import { asRedisError, RedisUnavailableError } from "../redis/errors.js";
import type { RedisLink } from "../redis/link.js";

export interface QueueBoardResources extends ServedSalesDeps {
  readonly redis: RedisLink;
  readonly queues: OrderQueues;
}

export interface QueueBoard {
  /**
   * What there is at a path below the board's own, `/` being its page, whose links start with `base`.
   * @throws SluiceError SERVICE_UNAVAILABLE while Redis is away; a database error where the sales were never read
   */
  get(path: string, query: string, base: string): Promise<Response>;
}

/** bull-board with the queues that it was made for. */
interface Board {
  fetch(request: Request): Promise<Response>;
}

/** The board, its queues kept in step with the sales that are served. */
export function createQueueBoard(resources: QueueBoardResources): QueueBoard {
  const listSales = createServedSales(resources);
  const opened = new Map<string, Queue>();
  // The page and its scripts are the same whatever the queues are, and come while Redis and the database are away too.
  const shell = boardOver([]);
  let current = { sales: "[]", board: shell };

  const boardNow = async (): Promise<Board> => {
    const sales = await listSales();
    const titles = JSON.stringify(sales.map(({ id, title }) => [id, title]));
    // Made anew, not told of the change: bull-board puts new queues last, and reads its list while it answers.
    if (titles !== current.sales) current = { sales: titles, board: boardOver(adaptersOf(sales)) };
    return current.board;
  };

  const adaptersOf = (sales: readonly Sale[]): BullMQAdapter[] => {
    const served = new Set(sales.map((sale) => sale.id));
    for (const [saleId, queue] of opened) {
      if (served.has(saleId)) continue;
      opened.delete(saleId);
      void queue.close().catch(() => {});
    }
    return sales.map((sale) => {
      const queue = opened.get(sale.id) ?? resources.queues.open(sale.id);
      opened.set(sale.id, queue);
      return adapterOf(sale, queue);
    });
  };

  return {
    async get(path, query, base) {
      // Always GET, and without the caller's headers: his token is none of bull-board's business.
      const request = new Request(`http://board${path}${query}`);
      if (!path.startsWith("/api/")) return ownPage(await shell.fetch(request), base);
      // Gives up earlier than BullMQ's many commands would, and the link learns from it that its server is silent.
      await resources.redis.run((client) => client.ping()).catch(throwAsUnavailable);
      const board = await boardNow();
      return await board.fetch(request).catch((error: unknown) => {
        // A name that can't be decoded twice.
        if (error instanceof URIError) return new Response(null, { status: 404 });
        return throwAsUnavailable(error);
      });
    },
  };
}

/** All our queues have one name, and by names bull-board tells them apart and lists them: so each gets its sale's. */
function adapterOf(sale: Sale, queue: Queue): BullMQAdapter {
  return new BullMQAdapter(queue, {
    readOnlyMode: true,
    prefix: `${fitForPath(sale.title)} (${sale.id}) `.trimStart(),
    displayName: `${sale.title} (${sale.id})`,
  });
}

/** A text for bull-board's names, which become paths that are decoded twice: letters and digits, not too many. */
function fitForPath(title: string): string {
  const words = title.replace(/[^\p{L}\p{M}\p{N}]+/gu, " ").trim();
  return [...words].slice(0, 40).join("");
}

function boardOver(adapters: readonly BullMQAdapter[]): Board {
  const serverAdapter = new HonoAdapter(serveStatic);
  createBullBoard({
    queues: adapters,
    serverAdapter,
    options: {
      uiConfig: {
        boardTitle: "Sluice: queues",
        hideDocsLink: true,
      },
    },
  });
  // It would send the texts of errors, and Hono would write them to the console: they are for whoever called us.
  const rethrow = (error: unknown): never => {
    throw error;
  };
  serverAdapter.setErrorHandler(rethrow);
  const app = serverAdapter.registerPlugin().onError(rethrow);
  return { fetch: async (request) => app.fetch(request) };
}

function throwAsUnavailable(error: unknown): never {
  const failure = asRedisError(error);
  if (!(failure instanceof RedisUnavailableError)) throw failure;
  throw serviceUnavailable("Redis does not answer, so its queues can't be looked at.", failure);
}

/** bull-board's page under our path, without the fonts that it would fetch from elsewhere. */
async function ownPage(response: Response, base: string): Promise<Response> {
  if (!response.headers.get("content-type")?.startsWith("text/html")) return response;
  const html = await response.text();
  const own = html
    .replace(/<base href="[^"]*"/, `<base href="${base}/"`)
    .replace(/<link\b[^>]*\bhref="(?:https?:)?\/\/[^>]*>/g, "");
  return new Response(own, { status: response.status, headers: { "content-type": "text/html; charset=utf-8" } });
}
